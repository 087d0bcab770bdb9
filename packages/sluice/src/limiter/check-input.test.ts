import { expect, test } from "vitest";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { Check } from "../check.js";
import { checkedId, entriesFit, placesFit } from "./check-input.js";
import { MOST_PLACES } from "./lease-id.js";

const check = (cost: number, limit: number, charge?: true): Check =>
  ({ cost, plan: { policy: { limit } }, ...(charge && { charge }) }) as unknown as Check;

test("more places than a lease can name are refused, unless the limit refuses the cost anyway", () => {
  expect(placesFit(check(MOST_PLACES, 10_000))).toBe(true);
  expect(() => placesFit(check(MOST_PLACES + 1, 10_000))).toThrow("at most 1000 under a concurrency rule, got 1001");
  expect(placesFit(check(MOST_PLACES + 1, MOST_PLACES))).toBe(true);
});

test("more entries than a sorted set writes at once are refused, but not for a charge", () => {
  expect(entriesFit(check(MOST_ENTRIES, 10_000))).toBe(true);
  expect(() => entriesFit(check(MOST_ENTRIES + 1, 10_000))).toThrow("storage: packed takes any");
  expect(entriesFit(check(MOST_ENTRIES + 1, 10_000, true))).toBe(true);
  expect(entriesFit(check(MOST_ENTRIES + 1, MOST_ENTRIES))).toBe(true);
});

test("an id is a text of 1 to 1024 characters", () => {
  expect(checkedId("x".repeat(1_024))).toHaveLength(1_024);
  expect(() => checkedId("x".repeat(1_025))).toThrow("id: expected a string of 1 to 1024 characters, got one of 1025");
  expect(() => checkedId("")).toThrow("got one of 0");
  expect(() => checkedId({ a: 1 })).toThrow('got {"a":1}');
});
