/** A server whose clock steps, for real: a Redis under libfaketime. */
import { Redis } from "ioredis";
import { createLimiter, type Limiter, memoryStore, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const rules: Rule[] = [
  { id: "token-bucket", algorithm: "token-bucket", limit: 3, window: "1h" },
  { id: "gcra", algorithm: "gcra", limit: 3, window: "1h" },
  { id: "fixed-window", algorithm: "fixed-window", limit: 3, window: "1h" },
  { id: "sliding-counter", algorithm: "sliding-counter", limit: 3, window: "1h" },
  { id: "sorted-set", algorithm: "rolling-window", limit: 3, window: "1h", storage: "sorted-set" },
  { id: "packed", algorithm: "rolling-window", limit: 3, window: "1h", storage: "packed" },
].map((rule) => ({ ...rule, key: ["user"], match: { only: rule.id } }) as Rule);

describe.skipIf(whyMissing("redis", "faketime"))("a server clock that steps", () => {
  let redis: RedisServer;
  let limiter: Limiter;
  let client: Redis;

  beforeAll(async () => {
    redis = await startRedis({ faketime: true });
    client = new Redis(redis.url);
    limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 60_000, rememberRefusals: false }), rules });
  });
  afterAll(async () => {
    await limiter?.close();
    client?.disconnect();
    await redis?.stop();
  });

  test.each(rules)("$id: time that is lived twice frees quota once", async ({ id }) => {
    const request = { only: id, user: "ann" };
    await redis.stepClock!(0);
    for (let i = 0; i < 3; i++) expect((await limiter.check(request)).allowed).toBe(true);
    expect((await limiter.check(request)).allowed).toBe(false);
    // Two hours on, the limit is back, and is used up again.
    await redis.stepClock!(2 * 3_600);
    for (let i = 0; i < 3; i++) expect((await limiter.check(request)).allowed).toBe(true);
    expect((await limiter.check(request)).allowed).toBe(false);
    // The clock steps back, within a window, and lives the same time once more: it was paid out already.
    for (const back of [3_660, 2 * 3_600 - 1_800, 3_700, 2 * 3_600 - 60]) {
      await redis.stepClock!(back);
      const decision = await limiter.check(request);
      expect(decision).toMatchObject({ allowed: false, remaining: 0 });
      expect(decision.degraded).toBeUndefined();
      expect(decision.retryAfterMs).toBeGreaterThan(0);
    }
    await redis.stepClock!(6 * 3_600);
    expect(await limiter.check(request)).toMatchObject({ allowed: true });
  });

  test.each(rules)("$id: a clock that was hours ahead locks a key for a window, not for hours", async ({ id }) => {
    const request = { only: id, user: "cas" };
    await redis.stepClock!(10 * 3_600);
    for (let i = 0; i < 3; i++) expect((await limiter.check(request)).allowed).toBe(true);
    // Hours back: what was charged ahead counts as now, in one look and for good.
    await redis.stepClock!(0);
    const decision = await limiter.check(request);
    expect(decision).toMatchObject({ allowed: false, remaining: 0 });
    expect(decision.degraded).toBeUndefined();
    expect(decision.retryAfterMs).toBeLessThanOrEqual(2 * 3_600_000);
    const [key] = await client.keys("*cas*");
    expect(await client.pttl(key!)).toBeLessThanOrEqual(2 * 3_600_000);
    await redis.stepClock!(decision.retryAfterMs / 1_000 - 60);
    expect(await limiter.check(request)).toMatchObject({ allowed: false });
    await redis.stepClock!(decision.retryAfterMs / 1_000 + 1);
    expect(await limiter.check(request)).toMatchObject({ allowed: true });
    await client.flushall();
  });

  test("concurrency: leases that were taken hours ahead end after their term, not after hours", async () => {
    const other = createLimiter({
      store: redisStore(redis.url, { deadlineMs: 60_000, rememberRefusals: false }),
      rules: [{ id: "jobs", key: ["user"], algorithm: "concurrency", limit: 2, ttl: "1h" }],
    });
    const take = () => other.check({ user: "eve" });
    await redis.stepClock!(10 * 3_600);
    expect((await take()).allowed).toBe(true);
    await redis.stepClock!(0);
    expect((await take()).allowed).toBe(true);
    const refused = await take();
    expect(refused).toMatchObject({ allowed: false, remaining: 0 });
    expect(refused.retryAfterMs).toBeLessThanOrEqual(3_600_000);
    const [key] = await client.keys("*eve*");
    expect(await client.pttl(key!)).toBeLessThanOrEqual(3_600_000);
    await redis.stepClock!(3_600 - 60);
    expect((await take()).allowed).toBe(false);
    await redis.stepClock!(3_600 + 60);
    expect((await take()).allowed).toBe(true);
    expect((await take()).allowed).toBe(true);
    await other.close();
  });

  test("a block that was begun hours ahead lasts for its length, not for hours", async () => {
    const blocking: Rule = {
      id: "guard",
      key: ["user"],
      algorithm: "fixed-window",
      limit: 1,
      window: "1m",
      blockFor: "1h",
    };
    const other = createLimiter({
      store: redisStore(redis.url, { deadlineMs: 60_000, rememberRefusals: false }),
      rules: [blocking],
    });
    const ask = () => other.check({ user: "fay" });
    await redis.stepClock!(10 * 3_600);
    await ask();
    expect((await ask()).allowed).toBe(false);
    await redis.stepClock!(0);
    const refused = await ask();
    expect(refused).toMatchObject({ allowed: false, reason: "blocked" });
    expect(refused.retryAfterMs).toBeLessThanOrEqual(3_600_000);
    await redis.stepClock!(3_600 - 60);
    expect(await ask()).toMatchObject({ allowed: false, reason: "blocked" });
    await redis.stepClock!(3_600 + 60);
    expect((await ask()).allowed).toBe(true);
    await other.close();
  });

  test("a calendar window that was counted far ahead is counted in the present one", async () => {
    const daily: Rule = {
      id: "day",
      key: ["user"],
      algorithm: "fixed-window",
      limit: 1,
      window: "1d",
      align: "calendar",
    };
    const other = createLimiter({ store: redisStore(redis.url, { deadlineMs: 60_000 }), rules: [daily] });
    await redis.stepClock!(40 * 86_400);
    expect((await other.check({ user: "dan" })).allowed).toBe(true);
    await redis.stepClock!(0);
    const decision = await other.check({ user: "dan" });
    expect(decision).toMatchObject({ allowed: false });
    expect(decision.degraded).toBeUndefined();
    expect(decision.retryAfterMs).toBeLessThanOrEqual(86_400_000);
    await other.close();
  });

  test("a region whose clock goes back goes on to fetch from the global store", async () => {
    const rule: Rule = { id: "all", key: ["user"], algorithm: "rolling-window", limit: 1_000, window: "1h" };
    const store = redisStore(redis.url, { deadlineMs: 60_000 });
    const rules = [{ ...rule, scope: "global" as const, onStoreFailure: "deny" as const }];
    const regional = createLimiter({ store, globalStore: memoryStore(), region: "eu", rules });
    const use = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) expect(await regional.check({ user: "eve" })).toMatchObject({ allowed: true });
    };
    await redis.stepClock!(0);
    await use(100);
    // So far that a rate measured over it would not be finite, nor any after it.
    await redis.stepClock!(-12 * 3_600);
    await use(600);
    expect(regional.regionStats()).toMatchObject({ failedFetches: 0, cutOffRequests: 0 });
    await regional.close();
  });

  test("a caller's clock is not asked: a calendar window follows the server's", async () => {
    limiter.setRules([
      {
        id: "daily",
        key: ["user"],
        algorithm: "fixed-window",
        limit: 1,
        window: "1d",
        align: "calendar",
        timezone: "Asia/Tokyo",
      },
    ]);
    await redis.stepClock!(0);
    expect((await limiter.check({ user: "bob" })).allowed).toBe(true);
    expect((await limiter.check({ user: "bob" })).allowed).toBe(false);
    // Forty days on, farther than the boundaries that the caller knows reach.
    await redis.stepClock!(40 * 86_400);
    const decision = await limiter.check({ user: "bob" });
    expect(decision).toMatchObject({ allowed: true });
    expect(decision.degraded).toBeUndefined();
    expect(decision.resetAfterMs).toBeLessThanOrEqual(86_400_000);
  });
});
