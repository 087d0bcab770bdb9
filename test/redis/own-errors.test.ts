/**
 * What one request's own numbers, or its own counter, can make Redis say. No valid rule and no cost leads to an error; and a script
 * that fails all the same fails that request alone, never the breaker, and never those that share its call.
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { type Attributes, createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const login: Rule = {
  id: "login",
  key: ["user"],
  match: { path: "/login" },
  algorithm: "rolling-window",
  limit: 1,
  window: "1d",
};

describe.skipIf(whyMissing("redis"))("errors that a request causes itself", () => {
  let redis: RedisServer;
  let client: Redis;
  const limiters: Limiter[] = [];

  const limiterOf = (rules: readonly Rule[]): Limiter => {
    const store = redisStore(redis.url, { deadlineMs: 20_000, breakerFailures: 3, rememberRefusals: false });
    const limiter = createLimiter({ store, rules: [...rules] });
    limiters.push(limiter);
    return limiter;
  };
  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    for (const limiter of limiters) await limiter.close();
    client?.disconnect();
    await redis?.stop();
  });

  test.each<Rule>([
    {
      id: "slow",
      key: ["user"],
      algorithm: "token-bucket",
      limit: 4_294_967_296,
      refill: { amount: 3, every: "3650d" },
    },
    { id: "slow", key: ["user"], algorithm: "gcra", limit: 3, window: "3650d", burst: 10_000_000_000 },
  ])(
    "a $algorithm whose refill takes longer than an expiry can say counts, and no other rule is left to its policy",
    async (rule) => {
      const limiter = limiterOf([{ ...rule, match: { path: "/slow" } }, login]);
      const slow = { user: `ann-${rule.algorithm}`, path: "/slow" };
      for (let i = 0; i < 5; i++) {
        const decision = await limiter.check({ ...slow, user: `${slow.user}-${i}` }, { cost: 1_000_000_000 });
        expect(decision).toMatchObject({ allowed: true, rule: "slow" });
        expect(decision.degraded).toBeUndefined();
      }
      const admitted = [];
      for (let i = 0; i < 5; i++) admitted.push((await limiter.check({ user: slow.user, path: "/login" })).allowed);
      expect(admitted).toEqual([true, false, false, false, false]);
    },
  );

  test("a counter that a script cannot read fails its own requests alone", async () => {
    const bucket: Rule = { id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 2, window: "1d" };
    const limiter = limiterOf([{ ...bucket, onStoreFailure: "deny" }]);
    // Neither long enough nor of another type.
    await client.set("sluice:1:{user=broken}:bucket:b", "xx");
    for (let round = 0; round < 5; round++) {
      const [broken, other] = await Promise.all([
        limiter.check({ user: "broken" }),
        limiter.check({ user: `other-${round}` }),
      ]);
      expect(broken).toMatchObject({ allowed: false, reason: "store-unavailable", degraded: "deny" });
      expect(other).toMatchObject({ allowed: true, remaining: 1 });
      expect(other.degraded).toBeUndefined();
    }
    expect(limiter.storeStats()!.breaker).toBe("closed");
  });

  /** From the smallest to the largest that a rule may say, with a liking for the edges. */
  const upTo = (most: number): fc.Arbitrary<number> =>
    fc.oneof(
      fc.constantFrom(1, 2, most - 1, most),
      fc.double({ min: 0, max: Math.log2(most), noNaN: true }).map((n) => Math.min(most, Math.floor(2 ** n))),
    );
  const ms = upTo(3650 * 86_400_000).map((n) => `${n}ms` as const);
  const most = upTo(Number.MAX_SAFE_INTEGER);
  const hostile: fc.Arbitrary<Partial<Rule>> = fc.oneof(
    fc.record({ algorithm: fc.constant("token-bucket" as const), limit: most, window: ms }),
    fc.record({
      algorithm: fc.constant("token-bucket" as const),
      limit: most,
      refill: fc.record({ amount: most, every: ms }),
    }),
    fc.record({ algorithm: fc.constant("gcra" as const), limit: most, window: ms, burst: most }),
    fc.record({ algorithm: fc.constant("fixed-window" as const), limit: most, window: ms }),
    fc.record({ algorithm: fc.constant("sliding-counter" as const), limit: most, window: ms }),
    fc.record({
      algorithm: fc.constant("rolling-window" as const),
      limit: most,
      window: ms,
      storage: fc.constant("sorted-set" as const),
    }),
    fc.record({
      algorithm: fc.constant("rolling-window" as const),
      limit: upTo(100_000),
      window: ms,
      storage: fc.constant("packed" as const),
    }),
  ) as fc.Arbitrary<Partial<Rule>>;
  const asks = fc.array(
    fc.record({
      kind: fc.constantFrom("check", "check", "charge", "charge", "peek", "refund", "give-back"),
      cost: fc.oneof(fc.constantFrom(0, 1), most),
    }),
    { minLength: 5, maxLength: 30 },
  );

  test("rules, costs and charges at the ends of what is valid lead to no error, and to numbers that are safe", async () => {
    console.log(`own-errors: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
    await client.flushall();
    const limiter = limiterOf([login]);
    const failures: unknown[] = [];
    limiter.on("degraded", (cause) => failures.push(cause));
    let asked = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { minLength: 1, maxLength: 4 }), asks, async (numbers, schedule) => {
        const rules = numbers.map((chosen, i) => ({ id: `h-${i}`, key: ["run"], ...chosen }) as Rule);
        limiter.setRules(rules);
        const attributes: Attributes = { run: String(asked) };
        for (const { kind, cost } of schedule) {
          asked++;
          // A sorted set takes 5 000 entries of one check, and says so before Redis is asked.
          const fits = rules.every(
            ({ algorithm, limit }) => algorithm !== "rolling-window" || cost <= 5_000 || cost > (limit as number),
          );
          if (kind === "give-back") await limiter.giveBack(attributes, { cost });
          else if (kind === "charge") seeSafe(await limiter.charge(attributes, { cost }), rules);
          else if (fits) {
            const decision = await limiter.check(attributes, { cost: kind === "peek" ? 0 : cost });
            seeSafe(decision, rules);
            if (kind === "refund") await limiter.refund(decision);
          }
        }
        const expiries = await Promise.all((await client.keys("*")).map((key) => client.pttl(key)));
        expect(expiries.filter((left) => left === -1)).toEqual([]);
        await client.flushall();
      }),
      { seed, numRuns: 600, endOnFailure: true },
    );
    console.log(`own-errors: ${asked} requests at the ends of what is valid`);
    expect(failures).toEqual([]);
    expect(limiter.storeStats()!.errors).toBe(0);
  }, 120_000);
});

function seeSafe({ degraded, checks }: Decision, rules: readonly Rule[]): void {
  expect(degraded).toBeUndefined();
  for (const [i, { limit, remaining, debt = 0, retryAfterMs, resetAfterMs }] of checks.entries()) {
    for (const number of [remaining, debt, retryAfterMs, resetAfterMs]) {
      expect(Number.isSafeInteger(number) && number >= 0, `${number}`).toBe(true);
    }
    const rule = rules[i]!;
    expect(remaining).toBeLessThanOrEqual(rule.algorithm === "gcra" ? rule.burst! : limit);
  }
}
