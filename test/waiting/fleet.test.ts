/**
 * Turns over a fleet: three limiters on one Redis. Order, spacing and reuse are judged by the instants that the store gave, so that a busy
 * machine changes nothing.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Decision } from "../../packages/sluice/src/limiter/decision.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";

const INTERVAL_MS = 20;
const base = { key: [], limit: 1_000 / INTERVAL_MS, window: "1s", maxWait: "1h" } as const;
const paced: Rule[] = [
  { ...base, id: "gcra", algorithm: "gcra", burst: 1 },
  { ...base, id: "packed", algorithm: "rolling-window", storage: "packed", limit: 1, window: `${INTERVAL_MS}ms` },
  { ...base, id: "sorted", algorithm: "rolling-window", storage: "sorted-set", limit: 1, window: `${INTERVAL_MS}ms` },
  { ...base, id: "bucket", algorithm: "token-bucket", limit: 1, window: `${INTERVAL_MS}ms` },
  { ...base, id: "fixed", algorithm: "fixed-window", limit: 1, window: `${INTERVAL_MS}ms` },
];

describe.skipIf(whyMissing("redis"))("turns over a fleet", () => {
  let redis: RedisServer;
  const limiters: Limiter[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
  });

  afterAll(() => redis?.stop());

  function limiter(rules: readonly Rule[], url = redis.url): Limiter {
    const made = createLimiter({ store: redisStore(url, { deadlineMs: 10_000 }), rules });
    limiters.push(made);
    return made;
  }

  /** The instant of the turn, on the store's clock. */
  function turnOf(decision: Decision): number {
    return Decision.originOf(decision).nowMs + decision.delayMs;
  }

  test.each(paced)("$id: order is kept and spacing is exact, whichever instance asks", async (rule) => {
    const fleet = [limiter([rule]), limiter([rule]), limiter([rule])];
    const turns: number[] = [];
    const delays: number[] = [];
    for (let i = 0; i < 60; i++) {
      const decision = (await fleet[i % 3]!.check({})) as Decision;
      const turn = turnOf(decision);
      // A request that need not wait comes anywhere in its fixed window; turns are the starts of the windows behind it.
      turns.push(rule.id === "fixed" ? turn - (turn % INTERVAL_MS) : turn);
      delays.push(decision.delayMs);
    }
    const gaps = turns.slice(1).map((turn, i) => turn - turns[i]!);
    expect(gaps.filter((gap) => gap < INTERVAL_MS)).toEqual([]);
    // Whoever has to wait has the next turn, not a later one.
    expect(
      delays.flatMap((delayMs, i) => (delayMs > 0 && gaps.at(i - turns.length) !== INTERVAL_MS ? [i] : [])),
    ).toEqual([]);
  });

  test.each(paced.filter(({ id }) => id !== "fixed"))(
    "$id: turns that are given back are the next ones'",
    async (rule) => {
      const slow = {
        ...rule,
        id: `${rule.id}-slow`,
        limit: 1,
        window: "10m",
        ...(rule.algorithm === "gcra" ? { burst: 1 } : {}),
      } as Rule;
      const fleet = [limiter([slow]), limiter([slow]), limiter([slow])];
      const ask = async (i: number): Promise<Decision> => (await fleet[i % 3]!.check({})) as Decision;
      const first = await ask(0);
      expect(first.delayMs).toBe(0);
      const booked = [await ask(1), await ask(2), await ask(0), await ask(1)];
      const at = booked.map(turnOf);
      expect(at.map((turn, i) => turn - (i === 0 ? turnOf(first) : at[i - 1]!))).toEqual([
        600_000, 600_000, 600_000, 600_000,
      ]);
      expect(await fleet[1]!.refund(booked[2]!)).toBe(true);
      expect(await fleet[0]!.refund(booked[0]!)).toBe(true);
      expect([turnOf(await ask(2)), turnOf(await ask(0)), turnOf(await ask(1))]).toEqual([
        at[0],
        at[2],
        at[3]! + 600_000,
      ]);
    },
  );

  test.each(paced)("$id: turns that have passed, however many, hide none to come", async (rule) => {
    const hidden = { ...rule, id: `${rule.id}-hidden` } as Rule;
    const [one, other] = [limiter([hidden]), limiter([hidden])] as const;
    const booked = (await Promise.all(Array.from({ length: 300 }, () => one.check({})))) as Decision[];
    await Promise.all(booked.map((decision) => one.refund(decision)));
    // A hundred pass; two hundred are to come.
    const passMs = Math.max(...booked.map(turnOf)) - 200 * INTERVAL_MS - Date.now();
    await new Promise((resolve) => setTimeout(resolve, passMs));
    expect((await other.check({})).delayMs).toBeLessThanOrEqual(2 * INTERVAL_MS);
  });

  test.each(paced)("$id: a turn from before a reset gives nothing back", async (rule) => {
    const slow = {
      ...rule,
      id: `${rule.id}-reset`,
      limit: 1,
      window: "10m",
      ...(rule.algorithm === "gcra" && { burst: 1 }),
    } as Rule;
    const [one, other] = [limiter([slow]), limiter([slow])] as const;
    const ask = async (): Promise<Decision> => (await one.check({})) as Decision;
    await ask();
    const old = await ask();
    await other.reset(slow.id, {});
    const since = [await ask(), await ask(), await ask()];
    await other.refund(old);
    expect(turnOf(await ask()) - turnOf(since[2]!)).toBe(600_000);
    // What was booked since is given back.
    await other.refund(since[1]!);
    expect(turnOf(await ask())).toBe(turnOf(since[1]!));
  });

  test("two hundred callers that leave at once, over three instances, delay nobody", async () => {
    const rule: Rule = { id: "leavers", key: [], algorithm: "gcra", limit: 1, window: "1m", burst: 1, maxWait: "1h" };
    const fleet = [limiter([rule]), limiter([rule]), limiter([rule])];
    const first = turnOf((await fleet[0]!.check({})) as Decision);
    for (let i = 0; i < 200; i++) {
      const controller = new AbortController();
      const turn = fleet[i % 3]!.acquire({}, { signal: controller.signal });
      await new Promise((resolve) => setTimeout(resolve, 1));
      controller.abort(new Error("left"));
      await expect(turn).rejects.toThrow("left");
    }
    expect(turnOf((await fleet[1]!.check({})) as Decision)).toBe(first + 60_000);
  });

  test("while Redis is away a waiting request keeps its turn, and a turn given back is spent, not an error", async () => {
    const rule: Rule = { id: "away", key: [], algorithm: "gcra", limit: 1, window: "400ms", burst: 1, maxWait: "1h" };
    const proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    try {
      const away = createLimiter({ store: redisStore(proxy.url), rules: [rule], instances: 1 });
      limiters.push(away);
      expect((await away.acquire({})).delayMs).toBe(0);
      const controller = new AbortController();
      const [turn, leaver] = [away.acquire({}), away.acquire({}, { signal: controller.signal })];
      await new Promise((resolve) => setTimeout(resolve, 100));
      await proxy.refuse(true);
      proxy.cut();
      controller.abort(new Error("left"));
      await expect(leaver).rejects.toThrow("left");
      expect(await turn).toMatchObject({ allowed: true });
      // Under `local` turns are booked in this process.
      const local = await Promise.all([away.check({}), away.check({}), away.check({})]);
      expect(local.map(({ degraded }) => degraded)).toEqual(["local", "local", "local"]);
      expect(local.map(({ delayMs }) => delayMs > 0)).toEqual([false, true, true]);
    } finally {
      await proxy.stop();
    }
  });
});
