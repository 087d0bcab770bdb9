import { expect, test } from "vitest";
import { BenchLatency } from "./bench-latency.js";

test("percentiles are within 1 %, and the maximum is exact", () => {
  const latency = new BenchLatency();
  for (let ms = 1; ms <= 1_000; ms++) latency.record(ms);
  for (const percent of [50, 95, 99]) {
    expect(Math.abs(latency.percentileMs(percent) / (10 * percent) - 1)).toBeLessThan(0.01);
  }
  expect(latency.maxMs).toBe(1_000);
  expect(latency.percentileMs(100)).toBeLessThanOrEqual(1_000);
});

test("a weight counts as that many requests, and without requests there is no latency", () => {
  const latency = new BenchLatency();
  expect([latency.percentileMs(99), latency.maxMs]).toEqual([0, 0]);
  latency.record(1, 98);
  latency.record(500, 2);
  expect(latency.percentileMs(98)).toBeLessThan(1.01);
  expect(latency.percentileMs(99)).toBeGreaterThan(490);
});

test("latencies of zero and of days are in the outermost buckets", () => {
  const latency = new BenchLatency();
  latency.record(0);
  latency.record(1e9);
  expect(latency.percentileMs(50)).toBeLessThanOrEqual(0.001);
  expect(latency.maxMs).toBe(1e9);
});
