import { expect, test } from "vitest";
import { scalePolicy } from "./scale-policy.js";

test("a window's limit is scaled, its window is not", () => {
  const policy = { stored: "rolling-window-packed", limit: 100, windowMs: 1_000, minIntervalMs: 0 } as const;
  expect(scalePolicy(policy, 0.333)).toEqual({ ...policy, limit: 33 });
  expect(scalePolicy(policy, 0.0001).limit).toBe(1);
  expect(scalePolicy(policy, 1)).toBe(policy);
});

test("a bucket's rate follows its limit exactly, its burst in proportion", () => {
  const policy = { stored: "gcra", limit: 10, capacity: 5, amount: 1, scaleMs: 100 } as const;
  const half = scalePolicy(policy, 0.7);
  expect(half).toMatchObject({ limit: 7, capacity: 4 });
  expect("amount" in half && (half.amount / half.scaleMs) * 1_000).toBeCloseTo(7, 9);
});

test("a deny list stays one", () => {
  const policy = { stored: "fixed-window", limit: 0, windowMs: 1_000 } as const;
  expect(scalePolicy(policy, 2)).toBe(policy);
});
