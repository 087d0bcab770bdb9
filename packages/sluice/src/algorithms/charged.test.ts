import { expect, test } from "vitest";
import type { Check } from "../check.js";
import { chargedBy } from "./charged.js";
import { type Verdict, verdict } from "./model.js";
import type { Policy } from "./policy.js";

const bucket: Policy = { stored: "gcra", limit: 10, capacity: 10, amount: 2, scaleMs: 100 };
const checkOf = (policy: Policy, more: Partial<Check["plan"]> = {}): Check =>
  ({ plan: { policy, prefetchMs: 0, ...more }, key: "k", cost: 1, live: -1 }) as unknown as Check;
const found = (resetAfterMs: number, more: Partial<Verdict> = {}): Verdict => ({
  ...verdict(true, 0, 0, resetAfterMs, undefined),
  ...more,
});
const owed = (check: Check, one: Verdict): number => chargedBy({ nowMs: 5, verdicts: [one] }, 0, check, "e").owed;

test("a charge has its own time and name, and what its bucket lacked", () => {
  const reply = { nowMs: 5, timesMs: [7, 9], verdicts: [found(1), found(50)] };
  expect(chargedBy(reply, 1, checkOf(bucket), "e")).toMatchObject({ atMs: 9, entryId: "e", owed: 99 });
});

test("what had been given back before the charge is added", () => {
  expect(owed(checkOf(bucket), found(50, { given: 40 }))).toBe(139);
});

test("at a turn the bucket lacks its capacity, however many turns are booked behind", () => {
  expect(owed(checkOf(bucket), found(900, { delayMs: 100 }))).toBe(999);
});

test("it is unknown for other algorithms, and if the reset may be that of units in hand", () => {
  expect(owed(checkOf({ stored: "sliding-counter", limit: 1, windowMs: 9 }), found(50))).toBe(0);
  expect(owed({ ...checkOf(bucket, { prefetchMs: 20 }), charge: true }, found(50))).toBe(0);
});
