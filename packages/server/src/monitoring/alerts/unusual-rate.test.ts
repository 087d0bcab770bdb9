import { expect, test } from "vitest";
import { DAY_MS, MINUTES, type SeriesWindow, SLOTS, seasonStart } from "./series-window.js";
import { unusualRate } from "./unusual-rate.js";

/** `usual` checks per minute in the last hour and, with `seasonal`, on earlier days; `now` in the last `minutes`. */
function windowOf(given: { usual: number; now: number; minutes: number; seasonal?: boolean }): SeriesWindow {
  const { usual, now, minutes, seasonal = true } = given;
  const endMs = 20_000 * DAY_MS;
  return {
    endMs,
    knownMinutes: seasonal ? 60 * 24 * 30 : 120,
    checks: Float64Array.from({ length: MINUTES }, (_, i) => (i >= MINUTES - minutes ? now : usual)),
    refused: new Float64Array(MINUTES),
    seasonFromMs: seasonStart(endMs),
    season: [1, 2, 3].map((daysAgo) => ({
      daysAgo,
      checks: new Float64Array(SLOTS).fill(15 * usual),
      refused: new Float64Array(SLOTS),
    })),
  };
}
const levelOf = (given: Parameters<typeof windowOf>[0]) => unusualRate(windowOf(given), "a")?.level;

test("twice the usual for three whole minutes fires; for two minutes, or a little less, it only holds", () => {
  expect(levelOf({ usual: 200, now: 400, minutes: 3 })).toBe("fire");
  expect(levelOf({ usual: 200, now: 399, minutes: 3 })).toBe("hold");
  expect(levelOf({ usual: 200, now: 800, minutes: 2 })).toBe("hold");
  expect(levelOf({ usual: 200, now: 290, minutes: 3 })).toBeUndefined();
});

test("a lack needs five minutes at a third of the usual", () => {
  expect(levelOf({ usual: 200, now: 70, minutes: 5 })).toBe("fire");
  expect(levelOf({ usual: 200, now: 71, minutes: 5 })).toBe("hold");
  expect(levelOf({ usual: 200, now: 0, minutes: 4 })).toBe("hold");
});

test("low volume: a few checks more or fewer never alert, however large as a share", () => {
  expect(levelOf({ usual: 10, now: 22, minutes: 3 })).toBeUndefined();
  expect(levelOf({ usual: 29, now: 0, minutes: 5 })).toBeUndefined();
  expect(levelOf({ usual: 0, now: 99, minutes: 3 })).toBe("hold");
  expect(levelOf({ usual: 0, now: 100, minutes: 3 })).toBe("fire");
});

test("while only the last hour is known, the thresholds are higher", () => {
  expect(levelOf({ usual: 200, now: 600, minutes: 4, seasonal: false })).toBe("hold");
  expect(levelOf({ usual: 200, now: 800, minutes: 4, seasonal: false })).toBe("fire");
});

test("the finding includes the ratio to the usual rate, and the rule", () => {
  expect(unusualRate(windowOf({ usual: 200, now: 600, minutes: 3 }), "a")).toMatchObject({
    subject: "unusual-rate:a",
    rule: "a",
    value: 600,
    expected: 200,
    summary: "many checks of rule a: 600 a minute, 3 times the usual 200",
  });
});
