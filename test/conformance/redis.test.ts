/** The table on a real Redis: through a URL, through ioredis and through node-redis. */
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeEach, describe } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { conformance } from "./conformance.js";
import { lateRefunds } from "./refunds.js";

describe.skipIf(whyMissing("redis"))("stores in Redis", async () => {
  if (whyMissing("redis")) return;
  const server = await startRedis();
  const ioredis = new Redis(server.url);
  const nodeRedis = await createClient({ url: server.url }).connect();
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  // The table's waits are tight against its windows, not against this machine: a stall must not look like an outage.
  const options = { deadlineMs: 60_000 };

  beforeEach(async () => {
    await ioredis.flushall();
  });

  afterAll(async () => {
    ioredis.disconnect();
    nodeRedis.destroy();
    await server.stop();
  });

  for (const [name, client] of [
    ["Redis by URL", server.url],
    ["Redis by ioredis", ioredis],
    ["Redis by node-redis", nodeRedis],
  ] as const) {
    const limiter = (rules: readonly Rule[]): Limiter => createLimiter({ store: redisStore(client, options), rules });
    conformance({ name, limiter, wait });
    lateRefunds({ name, limiter, wait });
  }
});
