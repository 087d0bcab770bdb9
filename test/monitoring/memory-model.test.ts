/** The memory model beside `MEMORY USAGE` of a real Redis, for every stored form, near and past the places where forms change. */
import { type CountingRule, createLimiter, fullRuleKeyBytes } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const forms: readonly (readonly [string, Partial<CountingRule>])[] = [
  ["token-bucket", { algorithm: "token-bucket", window: "1h" }],
  ["gcra", { algorithm: "gcra", window: "1h" }],
  ["fixed-window", { algorithm: "fixed-window", window: "1d" }],
  ["sliding-counter", { algorithm: "sliding-counter", window: "1h" }],
  ["packed, 1m", { algorithm: "rolling-window", window: "1m", storage: "packed" }],
  ["packed, 1h", { algorithm: "rolling-window", window: "1h", storage: "packed" }],
  ["packed, 30d", { algorithm: "rolling-window", window: "30d", storage: "packed" }],
  ["sorted-set", { algorithm: "rolling-window", window: "1h", storage: "sorted-set" }],
  ["concurrency", { algorithm: "concurrency", ttl: "1h" }],
];
const limits = [1, 10, 100, 129, 1_000];

describe.skipIf(whyMissing("redis"))("the memory model", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test.each(forms)("%s: a full key is as large as predicted, within 10 %%", async (_name, numbers) => {
    for (const limit of limits) {
      await redis.cli("FLUSHALL");
      const rule = { id: "per-user", key: ["user"], limit, ...numbers } as CountingRule;
      const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000 }), rules: [rule] });
      for (let i = 0; i < limit; i++) await limiter.check({ user: "12345678" });
      await limiter.close();
      const key = (await redis.cli("--scan", "--pattern", "sluice:1:{*")).trim();
      const measured = Number(await redis.cli("MEMORY", "USAGE", key, "SAMPLES", "0"));
      const predicted = fullRuleKeyBytes(rule, key.length);
      expect(Math.abs(predicted / measured - 1), `${limit}: predicted ${predicted}, measured ${measured}`).toBeLessThan(
        0.1,
      );
    }
  });
});
