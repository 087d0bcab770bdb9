/** Adaptive limits over a fleet: one number in Redis, moved by one instance, followed by the others. */
import { Redis } from "ioredis";
import { createLimiter, type Limiter, type LimitMove, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const rule: Rule = {
  id: "tuned",
  key: ["user"],
  algorithm: "rolling-window",
  limit: 100,
  window: "1h",
  adapt: { signal: "reported", target: 0.8, min: 20, max: 200 },
};

describe.skipIf(whyMissing("redis"))("adaptive limits over a fleet", () => {
  let redis: RedisServer;
  const limiters: Limiter[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });
  afterAll(() => redis?.stop());

  function instance(): Limiter {
    const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000 }), rules: [rule] });
    limiters.push(limiter);
    return limiter;
  }
  const limitOf = (limiter: Limiter): number => limiter.adaptiveStats()[0]!.limit;
  const eventually = (holds: () => void): Promise<void> => vi.waitFor(holds, { timeout: 60_000, interval: 20 });

  test("one instance moves the number for all; decisions tell the limit in force; another takes over", async () => {
    const fleet = [instance(), instance(), instance()];
    const moves: LimitMove[][] = fleet.map(() => []);
    for (const [i, limiter] of fleet.entries()) limiter.on("limit", (move) => moves[i]!.push(move));
    expect(await fleet[0]!.check({ user: "ann" }, { cost: 90 })).toMatchObject({ limit: 100, remaining: 10 });
    await fleet[2]!.reportUtilisation(1, { source: "db", ttlMs: 60_000 });
    await eventually(() => expect(fleet.map(limitOf)).toEqual([20, 20, 20]));
    expect(fleet.filter((limiter) => limiter.adaptiveStats()[0]!.leads)).toHaveLength(1);
    expect(moves.filter((seen) => seen.some(({ leads }) => leads))).toHaveLength(1);
    expect(await fleet[1]!.check({ user: "ann" })).toMatchObject({ allowed: false, limit: 20, remaining: 0 });

    const leader = fleet.find((limiter) => limiter.adaptiveStats()[0]!.leads)!;
    await leader.close();
    const others = fleet.filter((limiter) => limiter !== leader);
    await others[0]!.reportUtilisation(0.01, { source: "db", ttlMs: 60_000 });
    await eventually(() => expect(Math.min(...others.map(limitOf))).toBeGreaterThan(20));
    expect(others.filter((limiter) => limiter.adaptiveStats()[0]!.leads)).toHaveLength(1);
  });

  test("numbers of rules that are gone are dropped, and what was not written by us is passed over", async () => {
    const client = new Redis(redis.url);
    const key = "sluice:1:{~}limits";
    await client.hset(key, "gone", "50 1000", "odd", "what");
    const limiter = instance();
    await eventually(() => expect(limiter.adaptiveStats()[0]!.limit).toBeGreaterThan(0));
    await vi.waitFor(async () => expect(await client.hkeys(key)).not.toContain("gone"), { timeout: 30_000 });
    expect(await client.hkeys(key)).not.toContain("odd");
    expect(await client.pttl(key)).toBeGreaterThan(0);
    client.disconnect();
  });
});
