import { expect, test } from "vitest";
import type { BucketPolicy } from "./policy.js";
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

test.each([
  { limit: 999_999_937, capacity: 999_999_937, amount: 999_999_937, scaleMs: 60_000 },
  { limit: 999_999_937, capacity: 5, amount: 1_000_000_007, scaleMs: 86_399_999 },
  { limit: 2 ** 43, capacity: 2 ** 43, amount: 1, scaleMs: 1 },
  { limit: 999_999_937, capacity: 5, amount: 2_999, scaleMs: 3_600_000 },
  { limit: 2 ** 43 - 1, capacity: 5, amount: 3, scaleMs: 3_600_000 },
])(
  "numbers of a large bucket stay whole numbers, as the ids of reservations and the scripts require: %o",
  (numbers) => {
    const policy = { stored: "token-bucket", ...numbers } as const;
    for (const share of [0.7, 1 / 3, 0.123_456_789, 1.1, 1.999_999_99]) {
      const moved = scalePolicy(policy, share) as BucketPolicy;
      expect(
        [moved.limit, moved.capacity, moved.amount, moved.scaleMs].filter((n) => !Number.isSafeInteger(n)),
      ).toEqual([]);
      const rate = moved.amount / moved.scaleMs / (policy.amount / policy.scaleMs);
      expect(Math.abs(rate / (moved.limit / policy.limit) - 1)).toBeLessThan(1e-5);
    }
  },
);

test("a deny list stays a deny list", () => {
  const policy = { stored: "fixed-window", limit: 0, windowMs: 1_000 } as const;
  expect(scalePolicy(policy, 2)).toBe(policy);
});
