import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketOf, LATENCY_BOUNDS_MS, LATENCY_BUCKETS, latencyNames, latencyOf } from "./latency-buckets.js";

test("a bound belongs to the bucket below it; values beyond the last bound have their own bucket", () => {
  expect([0, 0.05, 0.050001, 1000, 1000.1, Number.POSITIVE_INFINITY].map(bucketOf)).toEqual([0, 0, 1, 12, 13, 13]);
  expect(LATENCY_BUCKETS).toBe(LATENCY_BOUNDS_MS.length + 1);
  expect([latencyNames[0], latencyNames.at(-1)]).toEqual(["latency00", "latency13"]);
});

function countInBuckets(values: readonly number[]): number[] {
  const buckets = Array<number>(LATENCY_BUCKETS).fill(0);
  for (const value of values) buckets[bucketOf(value)]!++;
  return buckets;
}

test("p50 and p99 lie in the bucket of the true quantile, whatever the latencies are", () => {
  const latencies = fc.array(fc.double({ min: 0, max: 2_000, noNaN: true }), { minLength: 1, maxLength: 300 });
  fc.assert(
    fc.property(latencies, (values) => {
      const sorted = [...values].sort((a, b) => a - b);
      const { p50Ms, p99Ms } = latencyOf(countInBuckets(values));
      for (const [share, told] of [
        [0.5, p50Ms],
        [0.99, p99Ms],
      ] as const) {
        const bucket = bucketOf(sorted[Math.ceil(share * sorted.length) - 1]!);
        const most = LATENCY_BOUNDS_MS[Math.min(bucket, LATENCY_BOUNDS_MS.length - 1)]!;
        const least = bucket === 0 ? 0 : LATENCY_BOUNDS_MS[bucket - 1]!;
        expect(told).toBeLessThanOrEqual(most);
        expect(told).toBeGreaterThanOrEqual(least);
      }
      expect(p99Ms).toBeGreaterThanOrEqual(p50Ms);
    }),
  );
});

test("without requests a latency is 0; slower than the last bound counts as the last bound", () => {
  expect(latencyOf(countInBuckets([]))).toEqual({ p50Ms: 0, p95Ms: 0, p99Ms: 0 });
  expect(latencyOf(countInBuckets([5_000]))).toEqual({ p50Ms: 1000, p95Ms: 1000, p99Ms: 1000 });
});

test("values within a bucket are assumed to be evenly spread", () => {
  const buckets = countInBuckets(Array(100).fill(1.5));
  expect(latencyOf(buckets)).toEqual({ p50Ms: 1.75, p95Ms: 2.425, p99Ms: 2.485 });
});
