import { expect, test } from "vitest";
import { ownThreshold } from "./own-threshold.js";
import { MINUTES, type SeriesWindow, SLOTS } from "./series-window.js";

function windowOf(last: readonly number[], gaps: readonly number[] = []): SeriesWindow {
  const checks = new Float64Array(MINUTES).fill(500);
  checks.set(last, MINUTES - last.length);
  const none = new Float64Array(SLOTS);
  return {
    endMs: 0,
    knownMinutes: 600,
    checks,
    refused: new Float64Array(MINUTES),
    gaps: new Set(gaps.map((ago) => MINUTES - ago)),
    seasonFromMs: 0,
    season: [{ daysAgo: 1, checks: none, refused: none }],
  };
}

const quiet = { id: "quiet", metric: "checks", below: 100 } as const;

test("a minute that nobody counted is not below a threshold", () => {
  expect(ownThreshold(windowOf([0, 0, 0]), quiet, undefined)?.level).toBe("fire");
  expect(ownThreshold(windowOf([0, 0, 0], [1, 2, 3]), quiet, undefined)).toBeUndefined();
  expect(ownThreshold(windowOf([0, 0, 0], [2]), quiet, undefined)?.level).toBe("hold");
});
