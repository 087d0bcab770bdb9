import { expect, test } from "vitest";
import { perMinute } from "./per-minute.js";

test("the step that lasts is as high as those before it, and what was not counted is unknown", () => {
  const steps = [{ coveredMs: 0 }, { coveredMs: 60_000 }, { coveredMs: 900_000 }, { coveredMs: 6_000 }];
  expect(perMinute([0, 120, 1_800, 12], steps)).toEqual([null, 120, 120, 120]);
  expect(perMinute([null, 5], [{ coveredMs: 60_000 }])).toEqual([null, null]);
});
