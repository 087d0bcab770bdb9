/** A subscription whose connection breaks again at once must not end the process: nobody awaits what the client sends by itself. */
import { afterEach, expect, test, vi } from "vitest";
import { connectRedis, type Redis } from "../../packages/sluice/src/internal.js";
import { parseRedisUrl } from "../../packages/sluice/src/store/redis/url.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";

interface Connector {
  connect(...args: unknown[]): Promise<NodeJS.EventEmitter & { end(): void }>;
}

const listeners = process.listeners("unhandledRejection");
afterEach(() => {
  process.removeAllListeners("unhandledRejection");
  for (const listener of listeners) process.on("unhandledRejection", listener);
});

test.skipIf(whyMissing("redis"))("a connection that breaks as it opens leaves no rejection behind", async () => {
  await using redis = await startRedis();
  const unhandled: unknown[] = [];
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => unhandled.push(reason));
  const client = connectRedis(parseRedisUrl(redis.url)) as Redis;
  client.on("error", () => undefined);
  let subscribed = 0;
  client.on("ready", () => {
    client.subscribe("rules").then(
      () => subscribed++,
      () => undefined,
    );
  });
  await vi.waitFor(() => expect(subscribed).toBe(1));
  let breaks = 3;
  // The server has answered the greeting, and the socket is being closed when the client reads that.
  const { connector } = client as unknown as { connector: Connector };
  const connect = connector.connect.bind(connector);
  connector.connect = async (...args: Parameters<typeof connect>) => {
    const stream = await connect(...args);
    if (breaks-- > 0) stream.once("data", () => stream.end());
    return stream;
  };
  client.stream.destroy();
  await vi.waitFor(() => expect(breaks).toBeLessThan(0), { timeout: 10_000 });
  await vi.waitFor(() => expect(subscribed).toBeGreaterThan(1), { timeout: 10_000 });
  client.disconnect();
  expect(unhandled).toEqual([]);
});
