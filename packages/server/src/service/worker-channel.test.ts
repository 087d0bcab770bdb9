import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { untilExit } from "./worker-channel.js";

test("a message sent too late to a worker does not break the wait for its exit", async () => {
  const worker = new EventEmitter().on("error", () => undefined);
  const ended = untilExit(worker as unknown as Parameters<typeof untilExit>[0]);
  worker.emit("error", Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  worker.emit("exit", 0);
  expect(await ended).toBeUndefined();
});
