/** The table on a real Redis: through a URL, through ioredis and through node-redis. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, describe } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { conformance } from "./conformance.js";
import { redisUnderTest } from "./redis-under-test.js";

describe.skipIf(whyMissing("redis"))("stores in Redis", async () => {
  if (whyMissing("redis")) return;
  const server = await startRedis();
  const ioredis = new Redis(server.url);
  const nodeRedis = await createClient({ url: server.url }).connect();

  afterAll(async () => {
    ioredis.disconnect();
    nodeRedis.destroy();
    await server.stop();
  });

  const clients = [
    ["Redis by URL", server.url],
    ["Redis by ioredis", ioredis],
    ["Redis by node-redis", nodeRedis],
  ] as const;
  conformance(clients.map(([name, client]) => redisUnderTest({ name, client, clear: () => ioredis.flushall() })));
});
