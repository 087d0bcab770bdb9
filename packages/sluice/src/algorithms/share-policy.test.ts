import { expect, test } from "vitest";
import { sharePolicy } from "./share-policy.js";

const bucket = { stored: "token-bucket", limit: 10, capacity: 10, amount: 1, scaleMs: 100 } as const;

test("a share is rounded down, but is at least 1", () => {
  const window = { stored: "fixed-window", limit: 10, windowMs: 1_000 } as const;
  expect(sharePolicy(window, 0.39)).toMatchObject({ limit: 3, windowMs: 1_000 });
  expect(sharePolicy(window, 0)).toMatchObject({ limit: 1 });
  expect(sharePolicy({ ...window, limit: 0 }, 0.5)).toMatchObject({ limit: 0 });
});

test("a bucket shrinks, and fills more slowly", () => {
  expect(sharePolicy(bucket, 0.5)).toMatchObject({ limit: 5, capacity: 5, amount: 1, scaleMs: 200 });
  // However small the share: a bucket that never fills would be a ban.
  expect(sharePolicy(bucket, 0).stored).toBe("token-bucket");
  expect(Number.isFinite((sharePolicy(bucket, 0) as typeof bucket).scaleMs)).toBe(true);
});
