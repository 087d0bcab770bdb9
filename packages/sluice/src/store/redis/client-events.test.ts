import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { type IoredisLike, ioredisConnection } from "./ioredis.js";

class Client extends EventEmitter {
  status = "connecting";
  call = async (): Promise<unknown> => "OK";
}

test.each(["connecting", "ready"])(
  "a client that was passed in, while %s, keeps no listener of a store that is closed",
  async (status) => {
    const client = new Client();
    client.status = status;
    for (let i = 0; i < 3; i++) {
      const connection = ioredisConnection(client as unknown as IoredisLike);
      expect(connection.isCold("")).toBe(client.status === "connecting");
      client.status = "ready";
      client.emit("ready");
      expect(connection.isCold("")).toBe(false);
      await connection.close();
    }
    expect(client.eventNames()).toEqual([]);
  },
);
