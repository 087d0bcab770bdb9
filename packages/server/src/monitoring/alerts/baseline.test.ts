import { expect, test } from "vitest";
import { expectedOf, MINUTES_FOR_RECENT, spreadOf } from "./baseline.js";
import { DAY_MS, type EarlierDay, MINUTE_MS, MINUTES, type SeriesWindow, SLOTS, seasonStart } from "./series-window.js";

/** A window that ends at midnight, with `checks` per minute, and `perQuarter` checks in each quarter hour of earlier days. */
function windowOf(given: {
  checks?: (minute: number) => number;
  days?: readonly (readonly [daysAgo: number, perQuarter: number])[];
  knownMinutes?: number;
}): SeriesWindow {
  const { checks = () => 100, days = [], knownMinutes = 60 * 24 * 30 } = given;
  const endMs = 20_000 * DAY_MS;
  const season = days.map(
    ([daysAgo, perQuarter]): EarlierDay => ({
      daysAgo,
      checks: new Float64Array(SLOTS).fill(perQuarter),
      refused: new Float64Array(SLOTS),
    }),
  );
  return {
    endMs,
    knownMinutes,
    checks: Float64Array.from({ length: MINUTES }, (_, i) => checks(i)),
    refused: new Float64Array(MINUTES),
    seasonFromMs: seasonStart(endMs),
    season,
  };
}

const week = (perQuarter: number) => [1, 2, 3, 4, 5, 6, 7].map((daysAgo) => [daysAgo, perQuarter] as const);

test("too little history gives no expectation; one more minute does", () => {
  expect(expectedOf(windowOf({ knownMinutes: MINUTES_FOR_RECENT - 1 }))).toBeUndefined();
  expect(expectedOf(windowOf({ knownMinutes: MINUTES_FOR_RECENT }))).toMatchObject({ high: 100, seasonal: false });
});

test("with fewer than two earlier days the last hour is the baseline, without the evaluated minutes", () => {
  const spike = (minute: number) => (minute >= MINUTES - 6 ? 10_000 : 100);
  const days = [[1, 1_500] as const];
  expect(expectedOf(windowOf({ checks: spike, days }))).toEqual({ high: 100, low: 100, spread: 0, seasonal: false });
});

test("an earlier day counts only if the history reaches back to it", () => {
  const days = week(1_500);
  const known = (ms: number) => expectedOf(windowOf({ days, knownMinutes: ms / MINUTE_MS }))?.seasonal;
  expect([known(2 * DAY_MS), known(2 * DAY_MS + 31 * MINUTE_MS)]).toEqual([false, true]);
});

test("with normal traffic the expectation is the seasonal one, and one bad day does not shift it", () => {
  const days = week(1_500).map(([ago, usual]) => [ago, ago === 3 ? 90_000 : usual] as const);
  expect(expectedOf(windowOf({ days }))).toMatchObject({ high: 100, low: 100, seasonal: true });
});

test("growth raises the level, but at most threefold, and the lower expectation never exceeds the usual", () => {
  const at = (checks: number) => expectedOf(windowOf({ checks: () => checks, days: week(1_500) }))!;
  expect(at(200)).toMatchObject({ high: 200, low: 100 });
  expect(at(1_000)).toMatchObject({ high: 300, low: 100 });
  expect(at(50)).toMatchObject({ high: 50, low: 50 });
  expect(at(10).high).toBe(50);
  expect(at(10).low).toBeCloseTo(100 / 3);
});

test("the spread is the scaled median absolute deviation: one outlier does not move it", () => {
  expect(spreadOf([9, 10, 11, 10, 1_000], 10)).toBeCloseTo(1.4826);
  expect(spreadOf([], 0)).toBe(0);
});
