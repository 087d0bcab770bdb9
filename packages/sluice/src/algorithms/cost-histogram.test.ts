import { expect, test } from "vitest";
import { addCosts, bucketOf, type CostWeights, MOST_WEIGHT, quantileOf } from "./cost-histogram.js";

const NONE: CostWeights = new Map();
const histogramOf = (costs: readonly number[]): CostWeights =>
  costs.reduce<CostWeights>((all, cost) => addCosts(all, new Map([[bucketOf(cost), 1]])), NONE);

test("a quantile is accurate to a bucket's width", () => {
  const costs = Array.from({ length: 1_000 }, (_, i) => i + 1);
  for (const [quantile, exact] of [
    [0.5, 500],
    [0.9, 900],
    [0.99, 990],
  ] as const) {
    const found = quantileOf(histogramOf(costs), quantile, 1)!;
    expect(Math.abs(found - exact) / exact).toBeLessThan(0.05);
  }
});

test("too few costs give no quantile", () => {
  expect(quantileOf(NONE, 0.9, 7)).toBeUndefined();
  expect(quantileOf(histogramOf(Array.from({ length: 19 }, () => 7)), 0.9, 7)).toBeUndefined();
  expect(quantileOf(histogramOf(Array.from({ length: 20 }, () => 7)), 0.9, 7)).toBeGreaterThanOrEqual(7);
});

test("old costs give way to recent ones", () => {
  const before = histogramOf(Array.from({ length: 3_000 }, () => 100));
  const after = Array.from({ length: 6_000 }, () => 10).reduce<CostWeights>(
    (all, cost) => addCosts(all, new Map([[bucketOf(cost), 1]])),
    before,
  );
  expect(quantileOf(before, 0.9, 1)).toBeGreaterThanOrEqual(95);
  expect(quantileOf(after, 0.9, 1)).toBeLessThan(12);
});

test("any costs leave a bounded number of buckets, and a bounded weight", () => {
  const all = histogramOf(Array.from({ length: 5_000 }, (_, i) => (i % 2 === 0 ? i : 2 ** (i % 53))));
  let weight = 0;
  for (const one of all.values()) weight += one;
  expect(weight).toBeLessThanOrEqual(MOST_WEIGHT);
  expect(all.size).toBeLessThan(53 * 8 + 2);
  expect([0, 1, Number.MAX_SAFE_INTEGER].map(bucketOf)).toEqual([-1, 0, 424]);
});

test("while little is known, the prior counts: the first requests to end are the cheap ones", () => {
  const cheap = (count: number): number => quantileOf(histogramOf(Array.from({ length: count }, () => 10)), 0.9, 400)!;
  expect(cheap(20)).toBeGreaterThan(390);
  expect(cheap(150)).toBeGreaterThan(390);
  expect(cheap(500)).toBeLessThan(12);
});
