/**
 * How well anomalies are found, on synthetic traffic with known ones: recall, and false alarms a day. Seeds are fixed; the figures that
 * are printed stand in docs/alerts.md. Rules of 3 to 3000 checks a minute, with weekends, growth, wandering levels and bursts.
 */
import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { AlertBook } from "../../packages/server/src/monitoring/alerts/alert-book.js";
import { refusalShare } from "../../packages/server/src/monitoring/alerts/refusal-share.js";
import { MINUTE_MS } from "../../packages/server/src/monitoring/alerts/series-window.js";
import { unusualRate } from "../../packages/server/src/monitoring/alerts/unusual-rate.js";
import type { AlertKind } from "../../packages/server/src/monitoring/views/alerts.js";
import { changed, DAY, someRule, type Traffic, type TrafficOptions, traffic, windowAt } from "./synthetic-traffic.js";

const judged: ReadonlySet<AlertKind> = new Set(["unusual-rate", "refusal-share"]);
const page = readFileSync(new URL("../../docs/alerts.md", import.meta.url), "utf8");
const told: string[] = [];
afterAll(() => console.log(told.join("\n")));

/** Alerts that begin between two minutes, by kind. */
function alertsIn(series: Traffic, range: { from: number; to: number; known?: (minute: number) => number }): string[] {
  const book = new AlertBook();
  const began: string[] = [];
  for (let minute = range.from; minute < range.to; minute++) {
    const window = windowAt(series, minute, range.known?.(minute));
    const findings = [unusualRate(window, "r"), refusalShare(window, "r")].filter((finding) => finding !== undefined);
    for (const { kind } of book.judge({ findings, judged, nowMs: minute * MINUTE_MS }).began) began.push(kind);
  }
  return began;
}

const made = new Map<string, Traffic>();

/** Most cases look at the same days: they are made once. */
function trafficOnce(rule: TrafficOptions): Traffic {
  const name = JSON.stringify(rule);
  const series = made.get(name) ?? traffic(rule);
  made.set(name, series);
  return series;
}

interface Anomaly {
  readonly minutes: number;
  readonly times?: number;
  readonly refused?: number;
}

/** The share of anomalies for which an alert begins while they last, or within two minutes after. */
function recall(kind: AlertKind, anomaly: Anomaly, { least, share }: { least: number; share?: number }): number {
  let found = 0;
  let tried = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const rule = { ...someRule(seed, 9), ...(share !== undefined && { refused: share }) };
    if (rule.perMinute < least) continue;
    const series = trafficOnce(rule);
    for (const hour of [3, 9, 14, 20]) {
      // Not at a full minute of the day: spikes do not begin on the hour.
      const from = 8 * DAY - (seed % 3) * DAY + hour * 60 + (seed % 17);
      const range = { from, to: from + anomaly.minutes + 2 };
      tried++;
      if (alertsIn(changed(series, { from, ...anomaly }), range).includes(kind)) found++;
    }
  }
  expect(tried).toBeGreaterThan(50);
  return found / tried;
}

const cases: readonly (readonly [string, AlertKind, Anomaly, { least: number; share?: number }, number])[] = [
  [
    "3 times the traffic for 5 minutes, from 30 a minute on",
    "unusual-rate",
    { minutes: 5, times: 3 },
    { least: 30 },
    0.9,
  ],
  [
    "10 times the traffic for 5 minutes, from 5 a minute on",
    "unusual-rate",
    { minutes: 5, times: 10 },
    { least: 5 },
    0.9,
  ],
  [
    "twice the traffic for 15 minutes, from 100 a minute on",
    "unusual-rate",
    { minutes: 15, times: 2 },
    { least: 100 },
    0.3,
  ],
  ["no traffic for 10 minutes, from 100 a minute on", "unusual-rate", { minutes: 10, times: 0 }, { least: 100 }, 0.9],
  [
    "a fifth of the traffic for 10 minutes, from 100 a minute on",
    "unusual-rate",
    { minutes: 10, times: 0.2 },
    { least: 100 },
    0.9,
  ],
  [
    "40 % refused for 5 minutes where 1 % are usual, from 60 a minute on",
    "refusal-share",
    { minutes: 5, refused: 0.4 },
    { least: 60, share: 0.01 },
    0.9,
  ],
];

test.each(cases)("%s: found", (name, kind, anomaly, of, floor) => {
  const share = recall(kind, anomaly, of);
  told.push(`recall ${(share * 100).toFixed(1)} %  ${name}`);
  expect(share).toBeGreaterThanOrEqual(floor);
  const row = page.split("\n").find((line) => line.startsWith(`| ${name} |`));
  expect(row, "the row of docs/alerts.md").toContain(`${(share * 100).toFixed(1)} %`);
});

test("ordinary traffic of 100 rules raises less than half a false alarm a day, weekend included", () => {
  let alarms = 0;
  // From the second Saturday's noon on: the level has stepped down. SLUICE_DETECTION_DAYS=7 looks at a whole week.
  const days = Number(process.env.SLUICE_DETECTION_DAYS ?? 1);
  const from = 12.5 * DAY;
  for (let seed = 1_001; seed <= 1_100; seed++) {
    const found = alertsIn(traffic(someRule(seed, 14 + days)), { from, to: from + days * DAY });
    alarms += found.length;
    if (found.length > 0) told.push(`  seed ${seed}: ${found.join(" ")}`);
  }
  told.push(`false alarms ${(alarms / days).toFixed(2)} a day for 100 rules with a baseline, over ${days} days`);
  expect(alarms / days).toBeLessThan(0.5);
}, 240_000);

test("in the first day, with nothing but the last hour to compare with, 100 rules raise fewer than two false alarms", () => {
  let alarms = 0;
  for (let seed = 2_001; seed <= 2_100; seed++) {
    const found = alertsIn(traffic(someRule(seed, 2)), { from: 70, to: DAY, known: (minute) => minute });
    alarms += found.length;
    if (found.length > 0) told.push(`  seed ${seed}: ${found.join(" ")}`);
  }
  told.push(`false alarms ${alarms} in the first day of 100 rules`);
  expect(alarms).toBeLessThan(2);
}, 240_000);

test("nothing fires in the first half hour, whatever comes", () => {
  const series = changed(traffic({ seed: 5, days: 2, perMinute: 500 }), {
    from: 600,
    minutes: 30,
    times: 20,
    refused: 1,
  });
  const range = { from: 600, to: 630, known: (minute: number) => minute - 598 };
  expect(alertsIn(series, range)).toEqual([]);
});

test("a level that stays becomes the usual one: the alert of a threefold shift ends within two hours", () => {
  const from = 8 * DAY + 600;
  const series = changed(traffic({ seed: 9, days: 10, perMinute: 500 }), { from, minutes: DAY, times: 2.8 });
  const book = new AlertBook();
  let endedAfter: number | undefined;
  for (let minute = from; minute < from + 120; minute++) {
    const finding = unusualRate(windowAt(series, minute), "r");
    const { ended } = book.judge({ findings: finding ? [finding] : [], judged, nowMs: minute * MINUTE_MS });
    if (ended.length > 0) endedAfter ??= minute - from;
  }
  told.push(`a shift to 2.8 times is usual after ${endedAfter} minutes`);
  expect(endedAfter).toBeLessThan(120);
});

test("one trouble is one alert: a flapping spike does not begin a second one", () => {
  let series = traffic({ seed: 4, days: 9, perMinute: 500 });
  const from = 8 * DAY + 600;
  for (let i = 0; i < 6; i++) series = changed(series, { from: from + i * 6, minutes: 4, times: 4 });
  expect(alertsIn(series, { from, to: from + 40 })).toEqual(["unusual-rate"]);
});
