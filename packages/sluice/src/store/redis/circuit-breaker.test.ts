import { expect, test } from "vitest";
import { CircuitBreaker } from "./circuit-breaker.js";

const opened = (): CircuitBreaker => {
  const breaker = new CircuitBreaker({ failures: 3, intervalMs: 1_000 });
  for (const atMonotonicMs of [10, 20, 30]) breaker.failed(atMonotonicMs, new Error("no answer"), atMonotonicMs - 10);
  return breaker;
};

test("opens after consecutive failures, and a success in between restarts the count", () => {
  const breaker = new CircuitBreaker({ failures: 3, intervalMs: 1_000 });
  breaker.failed(1);
  breaker.failed(2);
  breaker.succeeded();
  breaker.failed(3);
  breaker.failed(4);
  expect(breaker.state).toBe("closed");
  expect(breaker.mayCall(5)).toBe(true);
  breaker.failed(6, "why");
  expect(breaker.state).toBe("open");
  expect(breaker.cause).toBe("why");
});

test("while open, one call per interval is the probe", () => {
  const breaker = opened();
  expect([31, 1_029].map((atMonotonicMs) => breaker.mayCall(atMonotonicMs))).toEqual([false, false]);
  expect(breaker.mayCall(1_030)).toBe(true);
  expect(breaker.state).toBe("half-open");
  expect(breaker.mayCall(1_031)).toBe(false);
  breaker.failed(1_200);
  expect(breaker.state).toBe("open");
  expect([1_201, 2_029, 2_030].map((atMonotonicMs) => breaker.mayCall(atMonotonicMs))).toEqual([false, false, true]);
  breaker.succeeded();
  expect(breaker.state).toBe("closed");
  expect(breaker.cause).toBeUndefined();
});

test("a connection that is newer than every failed call is probed at once, and only once", () => {
  const breaker = opened();
  // The last failed call was sent at 20.
  expect(breaker.mayCall(40, 20)).toBe(false);
  expect(breaker.mayCall(40, 25)).toBe(true);
  expect(breaker.mayCall(41, 25)).toBe(false);
  breaker.failed(240, "no answer", 40);
  expect(breaker.mayCall(241, 25)).toBe(false);
  expect(breaker.mayCall(300, 290)).toBe(true);
});

test("late failures of an old connection say nothing about a new one", () => {
  const breaker = opened();
  breaker.failed(60, "no answer", 25);
  expect(breaker.mayCall(61, 50)).toBe(true);
});

test("failedSince reports whether calls failed recently and none succeeded", () => {
  const breaker = opened();
  expect(breaker.failedSince(30)).toBe(true);
  expect(breaker.failedSince(31)).toBe(false);
  breaker.mayCall(500);
  expect(breaker.failedSince(500)).toBe(true);
  breaker.succeeded();
  expect(breaker.failedSince(0)).toBe(false);
});
