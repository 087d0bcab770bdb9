/** What was decided before a limit with `adapt` moved, and is refunded or settled after it. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";

/** Refills nothing that matters during a test. */
const bucket: Rule = {
  id: "tuned",
  key: ["user"],
  algorithm: "token-bucket",
  limit: 1_000,
  window: "1d",
  adapt: { signal: "reported", target: 0.8, min: 100, max: 2_000 },
};
const reserving: Rule = { ...bucket, cost: { attribute: "tokens" }, estimate: { default: 60, ttl: "1h" } };

const limiters: Limiter[] = [];
afterEach(async () => {
  await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
});

function opened(limiter: Limiter): Limiter {
  limiters.push(limiter);
  return limiter;
}

const limitOf = (limiter: Limiter): number => limiter.adaptiveStats()[0]!.limit;
async function lower(limiter: Limiter): Promise<void> {
  const from = limitOf(limiter);
  await limiter.reportUtilisation(1, { source: "db", ttlMs: 60_000 });
  await vi.waitFor(() => expect(limitOf(limiter)).toBeLessThan(from), { timeout: 60_000, interval: 5 });
}

test("memory: a refund after the limit moved gives back its charge, if none was made since", async () => {
  const limiter = opened(createLimiter({ rules: [bucket] }));
  const kept = await limiter.check({ user: "ann" }, { cost: 10 });
  const decision = await limiter.check({ user: "ann" }, { cost: 50 });
  await lower(limiter);
  expect([decision.limit, kept.limit]).toEqual([1_000, 1_000]);
  expect(await limiter.refund(decision)).toBe(true);
  const { remaining } = await limiter.peek({ user: "ann" }, { cost: 0 });
  expect(limitOf(limiter) - remaining!).toBe(10);
});

describe.skipIf(whyMissing("redis"))("on Redis", () => {
  test("a reservation is settled, though the limit moved while the store was asked for it", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const limiter = opened(createLimiter({ store: redisStore(proxy.url, { deadlineMs: 60_000 }), rules: [reserving] }));
    await vi.waitFor(async () => expect(await limiter.ready()).toBe(true));
    await limiter.reportUtilisation(1, { source: "db", ttlMs: 60_000 });
    // Every call takes 50 ms: some of these are under way when the limit moves.
    proxy.latencyMs = 50;
    const from = limitOf(limiter);
    const asked: Promise<string>[] = [];
    const ask = async (n: number): Promise<string> => {
      const { reservation } = await limiter.check({ user: `u${n}` });
      return reservation!.id;
    };
    for (let n = 0; limitOf(limiter) === from; n++) {
      asked.push(ask(n));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    proxy.latencyMs = 0;
    for (const id of await Promise.all(asked)) {
      expect(await limiter.settle(id, { tokens: 1 })).toMatchObject({ settled: true, charged: { tuned: 1 } });
    }
  });
});
