/**
 * Keys whose end has passed while Redis still shows them: up to version 7.0 it judges that by the start of a script, which reads the clock
 * later. They must read as absent keys do. Here the values are kept beyond their end by hand, so that every script meets one.
 */
import { Redis } from "ioredis";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const HOUR_MS = 3_600_000;

describe.skipIf(whyMissing("redis"))("keys that Redis shows beyond their end", () => {
  let redis: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  beforeEach(async () => {
    await client.flushall();
  });
  afterAll(async () => {
    client.disconnect();
    await redis?.stop();
  });

  const limiterOf = (rule: Rule) =>
    createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000, rememberRefusals: false }), rules: [rule] });
  const onlyKey = async (pattern: string): Promise<string> => {
    const keys = (await client.keys("*")).filter((key) => key.includes(pattern));
    expect(keys).toHaveLength(1);
    return keys[0]!;
  };

  test("a block by hand that has ended does not lengthen the next one", async () => {
    const lengths = ["1h", "2h"] as const;
    const rule: Rule = {
      id: "login",
      key: [],
      algorithm: "fixed-window",
      limit: 1,
      window: "365d",
      blockFor: [...lengths],
    };
    const limiter = limiterOf(rule);
    await limiter.block("login", {}, 30_000);
    const key = await onlyKey("login");
    const [untilMs, lengthMs, level] = (await client.get(key))!.split(" ").map(Number);
    await client.set(key, `${untilMs! - lengthMs!} ${lengthMs} ${level}`, "PX", HOUR_MS);
    expect((await limiter.check({})).allowed).toBe(true);
    const refused = await limiter.check({});
    expect(refused.allowed).toBe(false);
    expect((await client.get(key))!.split(" ").slice(1).map(Number)).toEqual([HOUR_MS, 1]);
    await limiter.close();
  });

  test.each(["alone", "with an id"])(
    "a key lives as long as the longest window that refused it in one call (%s)",
    async (how) => {
      const short: Rule = { id: "pages", key: [], algorithm: "fixed-window", limit: 1, window: "10m" };
      const long: Rule = { ...short, window: "365d" };
      for (const order of [
        [short, long],
        [long, short],
      ]) {
        await client.flushall();
        const limiter = limiterOf(short);
        await limiter.check({});
        const key = (await client.keys("*pages*"))[0]!;
        // Checks of one turn share a call, under whatever rules each was made.
        const asked = order.map((rule, i) => {
          limiter.setRules([rule]);
          return limiter.check({}, how === "alone" ? {} : { id: `${i}` });
        });
        expect((await Promise.all(asked)).map(({ allowed }) => allowed)).toEqual([false, false]);
        expect(await client.pttl(key)).toBeGreaterThan(HOUR_MS);
        await limiter.close();
      }
    },
  );

  test.each([1, 2])("a full bucket forgets what a clock that stepped back left ahead of it (cost %i)", async (cost) => {
    const limiter = limiterOf({ id: "bucket", key: [], algorithm: "token-bucket", limit: 10, window: "1s" });
    await limiter.check({}, { cost: 4 });
    const key = await onlyKey("bucket");
    const stored = (await client.getBuffer(key))!;
    const lastMs = stored.readDoubleLE(8);
    // Charged a minute ago, full again since; 68 units were given back, the last of them an hour ahead.
    const past = Buffer.alloc(44);
    stored.copy(past, 0, 0, 28);
    past.writeDoubleLE(lastMs - 60_000, 8);
    past.writeDoubleLE(68, 28);
    past.writeDoubleLE(lastMs + HOUR_MS, 36);
    await client.set(key, past, "PX", HOUR_MS);
    await limiter.check({}, { cost });
    const kept = (await client.getBuffer(key))!;
    expect(kept.length).toBe(28);
    expect(kept.readDoubleLE(0)).toBe(cost * kept.readDoubleLE(16));
    await limiter.close();
  });
});
