import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS, stepRates } from "./step-rates.js";

test("the current step is as high as those before it, and an uncovered one is unknown", () => {
  const steps = [{ coveredMs: 0 }, { coveredMs: 60_000 }, { coveredMs: 900_000 }, { coveredMs: 6_000 }];
  expect(stepRates([0, 120, 1_800, 12], steps, MINUTE_MS)).toEqual([null, 120, 120, 120]);
  expect(stepRates([null, 120, 5], steps.slice(0, 2), SECOND_MS)).toEqual([null, 2, null]);
});
