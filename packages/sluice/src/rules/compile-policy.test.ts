import { expect, test } from "vitest";
import { compilePolicy } from "./compile-policy.js";
import { effectiveNumbers } from "./effective-numbers.js";

test("a token bucket's rate is its limit over its window, reduced", () => {
  expect(compilePolicy({ algorithm: "token-bucket", limit: 100, window: "1m" })).toEqual({
    stored: "token-bucket",
    limit: 100,
    capacity: 100,
    amount: 1,
    scaleMs: 600,
  });
});

test("a token bucket's refill replaces the rate, not the capacity", () => {
  const refill = { amount: 10, every: "1.5s" };
  expect(compilePolicy({ algorithm: "token-bucket", limit: 100, refill })).toEqual({
    stored: "token-bucket",
    limit: 100,
    capacity: 100,
    amount: 1,
    scaleMs: 150,
  });
});

test("a rate that does not reduce stays exact", () => {
  const policy = compilePolicy({ algorithm: "token-bucket", limit: 7, window: "1s" });
  expect(policy).toMatchObject({ amount: 7, scaleMs: 1000 });
});

test("GCRA's burst is its limit unless the rule says otherwise", () => {
  const policy = compilePolicy({ algorithm: "gcra", limit: 10, window: "1s" });
  expect(policy).toEqual({ stored: "gcra", limit: 10, capacity: 10, amount: 1, scaleMs: 100 });
  expect(compilePolicy({ algorithm: "gcra", limit: 10, window: "1s", burst: 3 })).toMatchObject({
    limit: 10,
    capacity: 3,
  });
});

test("a rolling window is packed unless the rule asks for the sorted set", () => {
  const numbers = { algorithm: "rolling-window", limit: 5, window: "10s", minInterval: "50ms" } as const;
  const policy = { limit: 5, windowMs: 10_000, minIntervalMs: 50 };
  expect(compilePolicy(numbers)).toEqual({ stored: "rolling-window-packed", ...policy });
  expect(compilePolicy({ ...numbers, storage: "sorted-set" })).toEqual({ stored: "rolling-window", ...policy });
});

test("fixed windows are aligned to the epoch, or to a calendar in UTC unless a time zone is named", () => {
  const numbers = { algorithm: "fixed-window", limit: 5 } as const;
  expect(compilePolicy({ ...numbers, window: "1d" })).toEqual({
    stored: "fixed-window",
    limit: 5,
    windowMs: 86_400_000,
  });
  expect(compilePolicy({ ...numbers, window: "1d", align: "calendar" })).toEqual({
    stored: "fixed-window",
    limit: 5,
    windowMs: 86_400_000,
    calendar: { unit: "day", timezone: "UTC" },
  });
  expect(compilePolicy({ ...numbers, window: "month", align: "calendar", timezone: "Europe/Paris" })).toMatchObject({
    calendar: { unit: "month", timezone: "Europe/Paris" },
  });
});

test("a lease lives 30 s unless the rule says otherwise", () => {
  expect(compilePolicy({ algorithm: "concurrency", limit: 5 })).toEqual({
    stored: "concurrency",
    limit: 5,
    ttlMs: 30_000,
  });
  expect(compilePolicy({ algorithm: "concurrency", limit: 5, ttl: "2m" })).toMatchObject({ ttlMs: 120_000 });
});

test("a sliding counter keeps its limit and window", () => {
  expect(compilePolicy({ algorithm: "sliding-counter", limit: 5, window: "1s" })).toEqual({
    stored: "sliding-counter",
    limit: 5,
    windowMs: 1000,
  });
});

test("the highest layer wins, and fields of another algorithm are left out", () => {
  const rolling = { algorithm: "rolling-window", limit: 100, window: "1m", minInterval: "50ms" } as const;
  expect(effectiveNumbers([rolling, { algorithm: "token-bucket" }, { limit: 5, minInterval: "1s" }])).toEqual({
    algorithm: "token-bucket",
    limit: 5,
    window: "1m",
  });
});

test("a layer that names a window displaces the refill below it, and the reverse", () => {
  const refill = { amount: 1, every: "1s" };
  const filled = { algorithm: "token-bucket", limit: 100, refill } as const;
  expect(effectiveNumbers([filled, { window: "1m" }])).toEqual({ algorithm: "token-bucket", limit: 100, window: "1m" });
  const even = { algorithm: "token-bucket", limit: 100, window: "1m" } as const;
  expect(effectiveNumbers([even, { refill }])).toEqual({ algorithm: "token-bucket", limit: 100, refill });
  expect(effectiveNumbers([even, { algorithm: "gcra" }, { refill }])).toEqual({
    algorithm: "gcra",
    limit: 100,
    window: "1m",
  });
});

test("a layer that goes back to epoch windows drops the time zone below it", () => {
  const daily = {
    algorithm: "fixed-window",
    limit: 9,
    window: "1d",
    align: "calendar",
    timezone: "Asia/Tokyo",
  } as const;
  expect(effectiveNumbers([daily, { align: "epoch" }])).toEqual({
    algorithm: "fixed-window",
    limit: 9,
    window: "1d",
    align: "epoch",
  });
});
