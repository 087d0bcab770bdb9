/** The arithmetic alone; test/monitoring/memory-model.test.ts compares it with what Redis reports. */
import { expect, test } from "vitest";
import { fullKeyBytes } from "./memory-model.js";
import type { Policy, RollingWindowPolicy } from "./policy.js";

const bucket: Policy = { stored: "token-bucket", limit: 1, capacity: 1, amount: 1, scaleMs: 1 };
const rolling = (stored: RollingWindowPolicy["stored"], limit: number, windowMs: number): Policy => ({
  stored,
  limit,
  windowMs,
  minIntervalMs: 0,
});

test("a counter of a few numbers is a string embedded with its header, whatever its limit", () => {
  // 24 for the table's entry, 48 for a name of 40 characters, 48 for 28 bytes with their headers.
  expect(fullKeyBytes(bucket, 40)).toBe(24 + 48 + 48);
  expect(fullKeyBytes({ ...bucket, limit: 10 ** 9, capacity: 10 ** 9 }, 40)).toBe(fullKeyBytes(bucket, 40));
});

test("a bucket that stores its refill amount takes the next jemalloc size class", () => {
  expect(fullKeyBytes({ ...bucket, amount: 7 }, 40)).toBe(fullKeyBytes(bucket, 40) + 16);
});

test("a packed ring takes 2 to 5 bytes per entry, depending on the length of the window", () => {
  const perEntry = [60_000, 3_600_000, 86_400_000, 10 ** 10].map((windowMs) => {
    const of = (limit: number): number => fullKeyBytes(rolling("rolling-window-packed", limit, windowMs), 40);
    return Math.round((of(1_000_000) - of(500_000)) / 500_000);
  });
  expect(perEntry).toEqual([2, 3, 4, 5]);
});

test("a sorted set costs several times more per entry once it is a skip list", () => {
  const of = (limit: number): number => fullKeyBytes(rolling("rolling-window", limit, 60_000), 40);
  const asListpack = (of(128) - of(64)) / 64;
  const asSkipList = (of(1_000) - of(129)) / (1_000 - 129);
  expect(asSkipList / asListpack).toBeGreaterThan(3);
});

test("a longer term makes the members of a concurrency rule longer", () => {
  const of = (ttlMs: number): number => fullKeyBytes({ stored: "concurrency", limit: 100, ttlMs }, 40);
  expect(of(1_000_000)).toBeGreaterThan(of(1_000));
});
