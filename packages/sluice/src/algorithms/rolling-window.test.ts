import { expect, test } from "vitest";
import type { Verdict } from "./model.js";
import type { RollingWindowPolicy } from "./policy.js";
import { MOST_ENTRIES, type RollingWindowState, rollingWindow } from "./rolling-window.js";

const policy: RollingWindowPolicy = { stored: "rolling-window-packed", limit: 3, windowMs: 100, minIntervalMs: 0 };

function charge(state: RollingWindowState, nowMs: number, cost = 1, under = policy): Verdict {
  const found = rollingWindow.look(state, under, cost, nowMs);
  rollingWindow.charge(state, under, { cost, nowMs, requestId: "" }, found);
  return found;
}

const remaining = (state: RollingWindowState, nowMs: number): number =>
  rollingWindow.look(state, policy, 0, nowMs).remaining;
const refund = (state: RollingWindowState, cost: number, chargedAtMs: number): void =>
  rollingWindow.refund(state, policy, { cost, chargedAtMs, nowMs: chargedAtMs, requestId: "" });

test("each arrival leaves one window after it came, and the wait is until enough have left", () => {
  const state = rollingWindow.fresh();
  for (const atMs of [0, 30, 60]) charge(state, atMs);
  const waits = [1, 2, 3].map((cost) => rollingWindow.look(state, policy, cost, 70).retryAfterMs);
  expect(waits).toEqual([30, 60, 90]);
  expect([99, 100, 130, 160].map((nowMs) => remaining(state, nowMs))).toEqual([0, 1, 2, 3]);
});

test("the minimum interval refuses requests that follow too closely, with the longer of both waits", () => {
  const spaced = { ...policy, minIntervalMs: 20 };
  const state = rollingWindow.fresh();
  charge(state, 0, 2, spaced);
  expect(rollingWindow.look(state, spaced, 1, 5)).toMatchObject({ reason: "min-interval", retryAfterMs: 15 });
  expect(rollingWindow.look(state, spaced, 2, 5)).toMatchObject({ reason: "limit", retryAfterMs: 95 });
  expect(rollingWindow.look(state, spaced, 1, 20).allowed).toBe(true);
});

test("a charge beyond the limit becomes debt: the ring holds the newest, and memory stays bounded", () => {
  const state = rollingWindow.fresh();
  charge(state, 0, 2);
  expect(charge(state, 50, 1_000_000).remaining).toBe(3 - 1_000_002);
  expect(state.ring.length).toBeLessThanOrEqual(policy.limit);
  expect(rollingWindow.describe(state)).toEqual({ count: 1_000_002, lastMs: 50 });
  expect([remaining(state, 149), remaining(state, 150)]).toEqual([3 - 1_000_002, 3]);
});

test("a sorted set stores more entries than it may write at once only as debt", () => {
  const sorted: RollingWindowPolicy = { ...policy, stored: "rolling-window", limit: 10_000 };
  const state = rollingWindow.fresh();
  charge(state, 0, MOST_ENTRIES + 1, sorted);
  expect([state.count, state.debt?.units]).toEqual([0, MOST_ENTRIES + 1]);
});

test("a refund takes back entries of its own millisecond, and later ones move up", () => {
  const state = rollingWindow.fresh();
  for (const atMs of [0, 30, 60]) charge(state, atMs);
  refund(state, 1, 31);
  expect(remaining(state, 70)).toBe(0);
  refund(state, 5, 30);
  expect(remaining(state, 70)).toBe(1);
  expect([100, 159, 160].map((nowMs) => remaining(state, nowMs))).toEqual([2, 2, 3]);
});

test("a refund of a charge that became debt is taken from the debt", () => {
  const state = rollingWindow.fresh();
  charge(state, 0, 2);
  charge(state, 10, 3);
  expect(remaining(state, 20)).toBe(-2);
  refund(state, 2, 0);
  expect(remaining(state, 20)).toBe(0);
});

test("giving back takes the newest", () => {
  const state = rollingWindow.fresh();
  for (const atMs of [0, 60]) charge(state, atMs);
  expect(rollingWindow.giveBack(state, policy, { cost: 1, nowMs: 70 })).toBe(true);
  expect([remaining(state, 99), remaining(state, 100)]).toEqual([2, 3]);
  expect(rollingWindow.giveBack(state, policy, { cost: 1, nowMs: 100 })).toBe(false);
});

test("a counter that is more than a window ahead counts as now, once", () => {
  const state = rollingWindow.fresh();
  charge(state, 1_000_000, 2);
  expect(remaining(state, 0)).toBe(1);
  expect([remaining(state, 99), remaining(state, 100)]).toEqual([1, 3]);
});
