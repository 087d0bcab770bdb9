import { expect, test } from "vitest";
import type { SlidingCounterPolicy } from "./policy.js";
import { slidingCounter } from "./sliding-counter.js";

const policy: SlidingCounterPolicy = { stored: "sliding-counter", limit: 10, windowMs: 100 };
type State = ReturnType<typeof slidingCounter.fresh>;

function charge(state: State, nowMs: number, cost: number, under = policy): void {
  const found = slidingCounter.look(state, under, cost, nowMs);
  slidingCounter.charge(state, under, { cost, nowMs, requestId: "" }, found);
}

const remaining = (state: State, nowMs: number): number => slidingCounter.look(state, policy, 0, nowMs).remaining;

test("the previous cell counts by the share of it that the window still covers", () => {
  const state = slidingCounter.fresh();
  charge(state, 150, 8);
  expect([199, 200, 225, 250, 299, 300].map((nowMs) => remaining(state, nowMs))).toEqual([2, 2, 4, 6, 9, 10]);
});

test("the wait ends exactly when the cost fits: while the previous cell slides out, or in the next cell", () => {
  const state = slidingCounter.fresh();
  charge(state, 150, 8);
  for (const [nowMs, cost] of [
    [220, 5],
    [190, 6],
  ] as const) {
    const { allowed, retryAfterMs } = slidingCounter.look(state, policy, cost, nowMs);
    expect(allowed).toBe(false);
    expect(slidingCounter.look(state, policy, cost, nowMs + retryAfterMs - 1).allowed).toBe(false);
    expect(slidingCounter.look(state, policy, cost, nowMs + retryAfterMs).allowed).toBe(true);
  }
});

test("a refund finds the cell of its charge; after an edit of the window it gives nothing back", () => {
  const state = slidingCounter.fresh();
  charge(state, 150, 4);
  charge(state, 200, 2);
  slidingCounter.refund(state, policy, { cost: 1, nowMs: 200, chargedAtMs: 150, requestId: "" });
  expect(slidingCounter.describe(state)).toMatchObject({ previous: 3, current: 2 });
  slidingCounter.refund(state, policy, { cost: 1, nowMs: 200, chargedAtMs: 200, requestId: "" });
  expect(slidingCounter.describe(state)).toMatchObject({ previous: 3, current: 1 });
  const edited = { ...policy, windowMs: 50 };
  slidingCounter.refund(state, edited, { cost: 1, nowMs: 200, chargedAtMs: 200, requestId: "" });
  expect(slidingCounter.describe(state)).toMatchObject({ previous: 3, current: 1 });
});

test.each(["charge", "giveBack"] as const)(
  "after a window was edited and edited back, earlier charges give nothing back: %s",
  (by) => {
    const state = slidingCounter.fresh();
    const short = { ...policy, windowMs: 10 };
    charge(state, 105, 7);
    // Under the short window the seven are gone by the second of these.
    charge(state, 116, 1, short);
    charge(state, 127, 1, short);
    if (by === "charge") charge(state, 130, 1);
    else slidingCounter.giveBack(state, policy, { cost: 0, nowMs: 130 });
    const before = remaining(state, 130);
    slidingCounter.refund(state, policy, { cost: 7, nowMs: 130, chargedAtMs: 105, requestId: "" });
    expect(remaining(state, 130)).toBe(before);
  },
);

test("a refund leaves the charges of others where they are, for a longer window too", () => {
  const state = slidingCounter.fresh();
  charge(state, 105, 6);
  charge(state, 105, 4);
  slidingCounter.refund(state, policy, { cost: 4, nowMs: 250, chargedAtMs: 105, requestId: "" });
  expect(slidingCounter.look(state, { ...policy, windowMs: 1_000 }, 0, 260).remaining).toBe(4);
});

test("after a clock was set back nothing can be refunded: how much is left of a weighted charge is unknown", () => {
  const state = slidingCounter.fresh();
  charge(state, 140, 6);
  charge(state, 290, 1);
  // By then the six weigh one.
  expect(remaining(state, 160)).toBe(8);
  slidingCounter.refund(state, policy, { cost: 6, nowMs: 160, chargedAtMs: 140, requestId: "" });
  expect(remaining(state, 160)).toBe(8);
});

test("giving back takes from the current cell first", () => {
  const state = slidingCounter.fresh();
  charge(state, 150, 4);
  charge(state, 200, 2);
  expect(slidingCounter.giveBack(state, policy, { cost: 3, nowMs: 200 })).toBe(true);
  expect(slidingCounter.describe(state)).toMatchObject({ previous: 3, current: 0 });
  expect(slidingCounter.giveBack(slidingCounter.fresh(), policy, { cost: 3, nowMs: 200 })).toBe(false);
});

test("a counter that is more than a window ahead counts as now", () => {
  const state = slidingCounter.fresh();
  charge(state, 1_000_050, 6);
  expect(remaining(state, 150)).toBe(4);
  expect(remaining(state, 300)).toBe(10);
});

test("past its limit it refuses a strict look, and always a cost above the limit", () => {
  const state = slidingCounter.fresh();
  charge(state, 150, 12);
  expect(slidingCounter.look(state, policy, 0, 150)).toMatchObject({ allowed: true, remaining: -2 });
  expect(slidingCounter.look(state, policy, 0, 150, true).allowed).toBe(false);
  expect(slidingCounter.look(state, policy, 11, 150)).toMatchObject({ reason: "cost-exceeds-limit" });
});
