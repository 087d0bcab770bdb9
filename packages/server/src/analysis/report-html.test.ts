import { expect, test } from "vitest";
import type { LogCounts } from "./log/read-logs.js";
import { reportHtml } from "./report-html.js";
import type { Simulation } from "./simulate.js";

const counts = { lines: 3, bad: 1, formats: new Map([["<a>.log", "json"]]) } as unknown as LogCounts;
const simulation: Simulation = {
  total: 2_000,
  refused: 500,
  share: 0.25,
  unmatched: 0,
  malformed: 0,
  from: "2026-11-16T07:00:00.000Z",
  to: "2026-11-16T07:01:00.000Z",
  rules: [
    {
      rule: 'r"<b>',
      mode: "enforce",
      total: 2_000,
      refused: 500,
      share: 0.25,
      keys: 30,
      keysRefused: 1,
      exact: false,
      topKeys: [{ key: "user=<img src=x onerror=alert(1)>", refused: 500 }],
    },
  ],
  series: {
    startMs: 0,
    stepMs: 1_000,
    rows: [
      [4, 1],
      [0, 0],
    ],
  },
  evicted: 0,
};

test("the report contains the figures, and no name from a log or rule becomes markup (XSS)", () => {
  const html = reportHtml(simulation, counts);
  expect(html).toContain("2,000 requests");
  expect(html).toContain("500 refused (25 %)");
  expect(html).toContain("at least 1");
  expect(html).not.toMatch(/<img|<b>|<a>/);
  expect(html).toContain("user=&lt;img src=x");
});

test("columns are stacked: three quarters admitted, one refused", () => {
  const bars = [...reportHtml(simulation, counts).matchAll(/y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g)];
  expect(bars.map(([, y, height]) => [Number(y), Number(height)])).toEqual([
    [61, 135],
    [16, 45],
  ]);
});
