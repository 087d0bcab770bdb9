import { expect, test } from "vitest";
import { fixedWindow } from "./fixed-window.js";
import type { FixedWindowPolicy } from "./policy.js";

const policy: FixedWindowPolicy = { stored: "fixed-window", limit: 3, windowMs: 100 };
type State = ReturnType<typeof fixedWindow.fresh>;

function charge(state: State, nowMs: number, cost = 1, under = policy): void {
  const found = fixedWindow.look(state, under, cost, nowMs);
  fixedWindow.charge(state, under, { cost, nowMs, requestId: "" }, found);
}

const remaining = (state: State, nowMs: number, under = policy): number =>
  fixedWindow.look(state, under, 0, nowMs).remaining;

test("windows are aligned to the epoch, and each starts from zero", () => {
  const state = fixedWindow.fresh();
  charge(state, 190, 3);
  expect(fixedWindow.look(state, policy, 1, 190)).toMatchObject({ allowed: false, retryAfterMs: 10, reason: "limit" });
  expect([remaining(state, 199), remaining(state, 200)]).toEqual([0, 3]);
});

test("a charge may pass the limit; what remains is then below 0, and a strict look is refused", () => {
  const state = fixedWindow.fresh();
  charge(state, 100, 5);
  expect(fixedWindow.look(state, policy, 0, 110)).toMatchObject({ allowed: true, remaining: -2 });
  expect(fixedWindow.look(state, policy, 0, 110, true)).toMatchObject({ allowed: false, remaining: -2 });
});

test("a refund gives back what was charged in the current window, never beyond an empty counter", () => {
  const state = fixedWindow.fresh();
  charge(state, 150, 2);
  fixedWindow.refund(state, policy, { cost: 1, nowMs: 160, chargedAtMs: 150, requestId: "" });
  expect(remaining(state, 160)).toBe(2);
  fixedWindow.refund(state, policy, { cost: 9, nowMs: 160, chargedAtMs: 149, requestId: "" });
  expect(remaining(state, 160)).toBe(2);
  fixedWindow.refund(state, policy, { cost: 9, nowMs: 160, chargedAtMs: 150, requestId: "" });
  expect(remaining(state, 160)).toBe(3);
});

test("giving back reports whether the current window had counted anything", () => {
  const state = fixedWindow.fresh();
  charge(state, 150);
  expect(fixedWindow.giveBack(state, policy, { cost: 1, nowMs: 160 })).toBe(true);
  expect(fixedWindow.giveBack(state, policy, { cost: 1, nowMs: 160 })).toBe(false);
});

test("a clock that steps back within the next window does not free what was counted; one far ahead is moved to now", () => {
  const state = fixedWindow.fresh();
  charge(state, 210, 3);
  expect(remaining(state, 190)).toBe(0);
  charge(state, 1_000_000, 1);
  expect(fixedWindow.look(state, policy, 3, 150)).toMatchObject({ allowed: false, retryAfterMs: 50 });
});

test("a rule whose window grows keeps as much of its count as it can", () => {
  const state = fixedWindow.fresh();
  charge(state, 150, 2);
  expect(remaining(state, 950, { ...policy, windowMs: 1_000 })).toBe(1);
});

test("a calendar window ends with the local day", () => {
  const daily: FixedWindowPolicy = {
    ...policy,
    windowMs: 86_400_000,
    calendar: { unit: "day", timezone: "Asia/Tokyo" },
  };
  const state = fixedWindow.fresh();
  const nowMs = Date.parse("2026-01-15T14:59:59Z");
  charge(state, nowMs, 3, daily);
  expect(fixedWindow.look(state, daily, 1, nowMs)).toMatchObject({ allowed: false, retryAfterMs: 1_000 });
  expect(fixedWindow.look(state, daily, 1, nowMs + 1_000).allowed).toBe(true);
});
