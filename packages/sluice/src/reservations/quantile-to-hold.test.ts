import { expect, test } from "vitest";
import type { Policy } from "../algorithms/policy.js";
import { quantileToHold } from "./quantile-to-hold.js";

const rolling = (limit: number): Policy => ({
  stored: "rolling-window-packed",
  limit,
  windowMs: 60_000,
  minIntervalMs: 0,
});

test.each([
  [500, 0.97],
  [5_000, 0.97],
  [20_000, 0.91],
  [50_000, 0.81],
  [1_000_000, 0.8],
  [Number.MAX_SAFE_INTEGER, 0.8],
])("a rolling window of %i, for costs of 500: the quantile %f", (limit, quantile) => {
  expect(quantileToHold(rolling(limit), 500)).toBe(quantile);
});

test("the sorted set holds the same as the packed ring", () => {
  expect(quantileToHold({ ...rolling(50_000), stored: "rolling-window" } as Policy, 500)).toBe(0.81);
});

test("costs of 0 do not cause a division by zero", () => {
  expect(quantileToHold(rolling(50_000), 0)).toBe(0.8);
});

test("a fixed window holds the same, however many requests fit into it", () => {
  expect(quantileToHold({ stored: "fixed-window", limit: 1_000_000, windowMs: 60_000 }, 1)).toBe(0.97);
});
