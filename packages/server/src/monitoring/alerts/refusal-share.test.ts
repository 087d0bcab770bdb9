import { expect, test } from "vitest";
import { refusalShare } from "./refusal-share.js";
import { DAY_MS, MINUTES, type SeriesWindow, SLOTS, seasonStart } from "./series-window.js";

/** 100 checks a minute, `before` of them refused, and `now` in the last minutes; `usual` on earlier days. */
function windowOf(given: {
  before: number;
  now: number;
  minutes?: number;
  usual?: number;
  checks?: number;
}): SeriesWindow {
  const { before, now, minutes = 3, usual, checks = 100 } = given;
  const endMs = 20_000 * DAY_MS;
  const refused = (minute: number) => checks * (minute >= MINUTES - minutes ? now : before);
  const season = (usual === undefined ? [] : [1, 2, 3]).map((daysAgo) => ({
    daysAgo,
    checks: new Float64Array(SLOTS).fill(1_500),
    refused: new Float64Array(SLOTS).fill(1_500 * usual!),
  }));
  return {
    endMs,
    knownMinutes: 60 * 24 * 30,
    checks: new Float64Array(MINUTES).fill(checks),
    refused: Float64Array.from({ length: MINUTES }, (_, i) => refused(i)),
    seasonFromMs: seasonStart(endMs),
    season,
  };
}

test("a share that jumps for three minutes fires; for two it does not", () => {
  expect(refusalShare(windowOf({ before: 0.02, now: 0.5, usual: 0.02 }), "a")).toMatchObject({
    subject: "refusal-share:a",
    level: "fire",
    value: 0.5,
  });
  const short = refusalShare(windowOf({ before: 0.02, now: 0.5, minutes: 2, usual: 0.02 }), "a");
  expect(short?.level).toBe("hold");
});

test("a rule that always refuses much does not alert", () => {
  expect(refusalShare(windowOf({ before: 0.9, now: 0.9, usual: 0.9 }), "a")).toBeUndefined();
  expect(refusalShare(windowOf({ before: 0.02, now: 0.9, usual: 0.9 }), "a")).toBeUndefined();
});

test("fewer than 30 refusals never alert, whatever their share", () => {
  expect(refusalShare(windowOf({ before: 0, now: 0.9, usual: 0, checks: 10 }), "a")).toBeUndefined();
  expect(refusalShare(windowOf({ before: 0, now: 1, usual: 0, checks: 10 }), "a")).toMatchObject({ level: "fire" });
});

test("without earlier days the thresholds are higher", () => {
  expect(refusalShare(windowOf({ before: 0, now: 0.25, usual: 0 }), "a")?.level).toBe("fire");
  expect(refusalShare(windowOf({ before: 0, now: 0.25 }), "a")?.level).toBe("hold");
  expect(refusalShare(windowOf({ before: 0, now: 0.36 }), "a")?.level).toBe("fire");
});

test("for all requests together the finding has no rule", () => {
  const found = refusalShare(windowOf({ before: 0, now: 0.8, usual: 0 }), undefined);
  expect(found).toMatchObject({ subject: "refusal-share", summary: "80 % of all requests are refused; 0 % are usual" });
  expect(found).not.toHaveProperty("rule");
});
