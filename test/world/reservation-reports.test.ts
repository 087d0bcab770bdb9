/** What reports of progress would give a rolling window of tokens, in the model of bench/reservation-reports.mjs (docs/decisions/0040). */
import { expect, test } from "vitest";
import { drawn } from "../../bench/reservation-frontier.mjs";
import { withReports } from "../../bench/reservation-reports.mjs";
import { generatedTokens } from "./reservation-load.js";

const lengths = drawn(generatedTokens);
const seeds = [1_000, 1_001, 1_002, 1_003];
const policy = { limit: 50_000, margin: 0.005, quantile: 0.9, spread: 0.3 };

test.each([1, 2, 4, 8])(
  "reports that ride on the calls of %i instances: 0.99 of the window is used within a hundredth, at 2 calls a request",
  (instances) => {
    const found = withReports(lengths, { ...policy, instances, reports: "ride" }, seeds);
    expect(found.over).toBeLessThanOrEqual(0.01);
    expect(found.least).toBeGreaterThanOrEqual(0.99);
    expect(found.calls).toBeLessThanOrEqual(2.01);
  },
);

test("without them, streams of different speeds pass the limit by more", () => {
  expect(withReports(lengths, { ...policy, instances: 1, reports: "none" }, seeds).over).toBeGreaterThan(0.01);
});

test("in a window of 5 000 they help little: what is within a hundredth uses less than 0.9 of it", () => {
  const small = { ...policy, limit: 5_000, margin: 0, spread: 0, instances: 8, reports: "ride" } as const;
  const careful = withReports(lengths, { ...small, quantile: 0.999 }, seeds);
  expect(careful.over).toBeLessThanOrEqual(0.01);
  expect(careful.utilisation).toBeLessThan(0.9);
  expect(withReports(lengths, { ...small, quantile: 0.9 }, seeds).over).toBeGreaterThan(0.01);
});
