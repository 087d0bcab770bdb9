import fc from "fast-check";
import { expect, test } from "vitest";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { Rule } from "../rules/rule.js";
import { virtualClock } from "../testing.js";

/** A unit that was used, and when. */
type Use = number;

interface Paced {
  readonly name: string;
  readonly rule: Rule;
  /** Whether the uses keep the rule, by counting anew. */
  readonly holds: (uses: readonly Use[]) => boolean;
}

const LIMIT = 4;
const WINDOW_MS = 100;

function mostIn(uses: readonly Use[], windowOf: (use: Use) => (other: Use) => boolean): number {
  return Math.max(0, ...uses.map((use) => uses.filter(windowOf(use)).length));
}

/** No span holds more than the burst and what refills in it. */
function keepsRate(uses: readonly Use[], burst: number): boolean {
  return uses.every((last, i) =>
    uses.slice(0, i + 1).every((first, j) => i - j + 1 <= burst + ((last - first) * LIMIT) / WINDOW_MS + 1e-9),
  );
}

const base = { id: "paced", key: [], limit: LIMIT, window: `${WINDOW_MS}ms`, maxWait: "250ms" } as const;
const rolling = (uses: readonly Use[]): boolean =>
  mostIn(uses, (use) => (other) => other > use - WINDOW_MS && other <= use) <= LIMIT;
const algorithms: readonly Paced[] = [
  { name: "rolling-window", rule: { ...base, algorithm: "rolling-window" }, holds: rolling },
  {
    name: "rolling-window with minInterval",
    rule: { ...base, algorithm: "rolling-window", minInterval: "20ms" },
    holds: (uses) =>
      rolling(uses) && uses.every((use, i) => i === 0 || use - uses[i - 1]! >= 20 || use === uses[i - 1]),
  },
  {
    name: "fixed-window",
    rule: { ...base, algorithm: "fixed-window" },
    holds: (uses) =>
      mostIn(uses, (use) => (other) => Math.floor(other / WINDOW_MS) === Math.floor(use / WINDOW_MS)) <= LIMIT,
  },
  { name: "token-bucket", rule: { ...base, algorithm: "token-bucket" }, holds: (uses) => keepsRate(uses, LIMIT) },
  { name: "gcra", rule: { ...base, algorithm: "gcra", burst: 1 }, holds: (uses) => keepsRate(uses, 1) },
];

const arrivals = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })),
    cost: fc.oneof(
      { weight: 3, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: LIMIT }) },
    ),
    /** How long it waits at most; it leaves if its turn has not come by then. */
    patienceMs: fc.constantFrom(0, 5, 40, 1_000, 1_000, 1_000),
  }),
  { minLength: 1, maxLength: 60 },
);

/** Plays arrivals; returns the uses in order of time. */
async function play(limiter: Limiter, clock: ReturnType<typeof virtualClock>, steps: readonly Step[]): Promise<Use[]> {
  const uses: Use[] = [];
  const leaving: { atMs: number; leave: () => Promise<unknown> }[] = [];
  let atMs = clock.now();
  const untilMs = async (ms: number): Promise<void> => {
    leaving.sort((a, b) => a.atMs - b.atMs);
    while (leaving.length > 0 && leaving[0]!.atMs <= ms) {
      const next = leaving.shift()!;
      clock.set(next.atMs);
      await next.leave();
    }
    clock.set(ms);
  };
  for (const { afterMs, cost, patienceMs } of steps) {
    atMs += afterMs;
    await untilMs(atMs);
    const decision = await limiter.check({}, { cost });
    if (!decision.allowed) continue;
    if (decision.delayMs > patienceMs) leaving.push({ atMs: atMs + patienceMs, leave: () => limiter.refund(decision) });
    else for (let unit = 0; unit < cost; unit++) uses.push(atMs + decision.delayMs);
  }
  await untilMs(atMs + 1_000);
  return uses.sort((a, b) => a - b);
}

type Step = { afterMs: number; cost: number; patienceMs: number };

test.each(algorithms)("$name: whichever requests wait or leave, the limit holds", async ({ rule, holds }) => {
  await fc.assert(
    fc.asyncProperty(arrivals, async (steps) => {
      const clock = virtualClock();
      const uses = await play(createLimiter({ clock, rules: [rule] }), clock, steps);
      return holds(uses);
    }),
    { numRuns: 300 },
  );
});

test.each(algorithms)("$name: turns come in the order in which they were requested", async ({ rule }) => {
  await fc.assert(
    fc.asyncProperty(arrivals, async (steps) => {
      const clock = virtualClock();
      const limiter = createLimiter({ clock, rules: [rule] });
      let lastMs = 0;
      for (const { afterMs, cost } of steps) {
        clock.advance(afterMs);
        const decision = await limiter.check({}, { cost });
        if (!decision.allowed) continue;
        const turnMs = clock.now() + decision.delayMs;
        expect(turnMs).toBeGreaterThanOrEqual(lastMs);
        expect(decision.delayMs).toBeLessThanOrEqual(250);
        lastMs = turnMs;
      }
    }),
    { numRuns: 100 },
  );
});

async function delays(limiter: Limiter, count: number, cost = 1): Promise<(number | "refused")[]> {
  const found: (number | "refused")[] = [];
  for (let i = 0; i < count; i++) {
    const decision = await limiter.check({}, { cost });
    found.push(decision.allowed ? decision.delayMs : "refused");
  }
  return found;
}

test("gcra hands out turns an interval apart, and refuses what would wait too long", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 10, window: "1s", burst: 1, maxWait: "350ms" };
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  expect(await delays(limiter, 5)).toEqual([0, 100, 200, 300, "refused"]);
  const refused = await limiter.check({});
  expect(refused).toMatchObject({ allowed: false, reason: "limit", retryAfterMs: 50, delayMs: 0, remaining: 0 });
});

test("a turn of a fixed window is the start of the next one", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "fixed-window", limit: 2, window: "1s", maxWait: "2s" };
  const clock = virtualClock();
  clock.advance(300);
  const limiter = createLimiter({ clock, rules: [rule] });
  expect(await delays(limiter, 7)).toEqual([0, 0, 700, 700, 1700, 1700, "refused"]);
});

test("a rolling window's turn comes when the required entry has left, even more than a window away", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 2, window: "1s", maxWait: "10s" };
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  expect(await delays(limiter, 1)).toEqual([0]);
  clock.advance(400);
  expect(await delays(limiter, 6)).toEqual([0, 600, 1000, 1600, 2000, 2600]);
});

test("a turn that is given back goes to the next request, in parts if it costs less", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 4, window: "1s", maxWait: "10s" };
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  await limiter.check({}, { cost: 4 });
  const turn = await limiter.check({}, { cost: 4 });
  expect(turn.delayMs).toBe(1000);
  expect((await limiter.check({})).delayMs).toBe(2000);
  expect(await limiter.refund(turn)).toBe(true);
  expect(await limiter.refund(turn)).toBe(false);
  expect(await delays(limiter, 3)).toEqual([1000, 1000, 1000]);
  // Only one unit of it is left: a cost of 2 waits behind everyone.
  expect(await delays(limiter, 1, 2)).toEqual([2000]);
  expect(await delays(limiter, 1)).toEqual([1000]);
});

test("a thousand turns that are booked and given back do not delay the next one", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 100, window: "1s", burst: 1, maxWait: "10s" };
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  await limiter.check({});
  for (let i = 0; i < 1_000; i++) {
    const turn = await limiter.check({});
    expect(turn.delayMs).toBe(10);
    await limiter.refund(turn);
  }
  expect((await limiter.check({})).delayMs).toBe(10);
});

test("a turn that nobody took is refunded when its time has passed", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 1, window: "1s", maxWait: "10s" };
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  await limiter.check({});
  await limiter.refund(await limiter.check({}));
  clock.advance(1_001);
  expect((await limiter.check({})).delayMs).toBe(0);
});

test("the longest wait counts, and a request that one rule refuses takes no turn of another", async () => {
  const limiter = createLimiter({
    clock: virtualClock(),
    rules: [
      { id: "fast", key: [], algorithm: "gcra", limit: 10, window: "1s", burst: 1, maxWait: "1s" },
      { id: "slow", key: ["user"], algorithm: "gcra", limit: 2, window: "1s", burst: 1, maxWait: "600ms" },
    ],
  });
  expect((await limiter.check({ user: "ann" })).delayMs).toBe(0);
  const second = await limiter.check({ user: "ann" });
  expect(second.delayMs).toBe(500);
  expect(second.checks.map(({ delayMs }) => delayMs)).toEqual([100, 500]);
  expect((await limiter.check({ user: "ann" })).violated).toEqual(["slow"]);
  // One user's long wait does not delay the others: they wait only for the fast rule.
  expect((await limiter.check({ user: "bob" })).delayMs).toBe(200);
});

test("the same id gets the same turn, from now on", async () => {
  const clock = virtualClock();
  const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 1, window: "1s", maxWait: "10s" };
  const limiter = createLimiter({ clock, rules: [rule] });
  await limiter.check({});
  expect((await limiter.check({}, { id: "a" })).delayMs).toBe(1000);
  clock.advance(400);
  expect((await limiter.check({}, { id: "a" })).delayMs).toBe(600);
  expect((await limiter.check({})).delayMs).toBe(1600);
  expect(await limiter.refund("a")).toBe(true);
  expect((await limiter.check({})).delayMs).toBe(600);
});

test("a caller that cannot wait is refused, and never overtakes those who wait", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 2, window: "1s", maxWait: "10s" };
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  expect(await delays(limiter, 3)).toEqual([0, 0, 1000]);
  clock.advance(999);
  expect(await limiter.check({}, { wait: false })).toMatchObject({ allowed: false, reason: "limit", retryAfterMs: 1 });
  clock.advance(1);
  expect(await limiter.check({}, { wait: false })).toMatchObject({ allowed: true, delayMs: 0 });
});

test("a clock that jumps back by an hour makes nobody wait for it", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 10, window: "1s", maxWait: "10s" };
  const clock = virtualClock();
  const limiter = createLimiter({ clock, rules: [rule] });
  await delays(limiter, 30);
  clock.set(clock.now() - 3_600_000);
  const decision = await limiter.check({});
  expect(decision).toMatchObject({ allowed: true });
  expect(decision.delayMs).toBeLessThanOrEqual(1_000);
});

test("a reset forgets turns, and turns given back", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "rolling-window", limit: 1, window: "1s", maxWait: "10s" };
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  await limiter.check({});
  await limiter.refund(await limiter.check({}));
  await limiter.reset("r", {});
  expect(await delays(limiter, 3)).toEqual([0, 1000, 2000]);
});

test("a shadow rule reports the turn and delays nobody", async () => {
  const rule: Rule = { id: "r", key: [], algorithm: "gcra", limit: 1, window: "1s", maxWait: "10s", mode: "shadow" };
  const limiter = createLimiter({ clock: virtualClock(), rules: [rule] });
  await limiter.check({});
  const decision = await limiter.check({});
  expect(decision).toMatchObject({ allowed: true, delayMs: 0, checks: [{ rule: "r", mode: "shadow", delayMs: 1000 }] });
});
