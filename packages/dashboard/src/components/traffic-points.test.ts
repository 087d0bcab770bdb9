import { expect, test } from "vitest";
import type { Scope, StatsPoint, StatsView } from "../api/shapes.js";
import type { Feed } from "../live/live-feed.js";
import { coverageWords, pointsOf } from "./traffic-points.js";

const feed: Feed = { state: "live", latest: undefined, points: [], lastEventAtMs: undefined };
const counts = { shadowRefused: 0, candidateAllowed: 0, candidateRefused: 0, degraded: 0 };
const latency = { p50Ms: 2, p95Ms: 7, p99Ms: 9 };

function viewOf(steps: readonly { allowed: number; coveredMs: number; scope?: Scope }[]): StatsView {
  const points = steps.map((step, i): StatsPoint & typeof latency => ({
    atMs: i * 60_000,
    scope: "fleet",
    refused: 0,
    ...counts,
    ...latency,
    ...step,
  }));
  const total = { allowed: 0, refused: 0, shadowRefused: 0, degraded: 0, unmatched: 0, latency, points };
  const view = { atMs: 0, window: "hour", scope: "fleet", stepMs: 60_000, instances: 1, rulesVersion: 1 } as const;
  return { ...view, total, rules: [], complete: true };
}

test("a step is divided by its covered time, so that the current one keeps its height", () => {
  const { allowed } = pointsOf(
    false,
    feed,
    viewOf([
      { allowed: 147 * 60, coveredMs: 60_000 },
      { allowed: 147 * 4, coveredMs: 4_000 },
    ]),
  );
  expect(allowed).toEqual([147, 147]);
});

test("uncovered time is a gap, quiet time is 0, and without requests there is no latency", () => {
  const points = pointsOf(
    false,
    feed,
    viewOf([
      { allowed: 60, coveredMs: 60_000 },
      { allowed: 0, coveredMs: 0 },
      { allowed: 0, coveredMs: 60_000 },
    ]),
  );
  expect(points.allowed).toEqual([1, null, 0]);
  expect(points.latency.map((one) => one?.p50Ms ?? null)).toEqual([2, null, null]);
});

test("seconds missing from the stream break the line", () => {
  const second = (atMs: number) => ({ atMs, allowed: 5, refused: 0, shadowRefused: 0, latency });
  const points = pointsOf(true, { ...feed, points: [second(1_000), second(2_000), second(20_000)] }, undefined);
  expect(points.allowed).toEqual([5, 5, null, 5]);
});

test("missing coverage, and data from a single instance, is described in words", () => {
  expect(coverageWords(viewOf(Array(60).fill({ allowed: 1, coveredMs: 60_000 })))).toBeUndefined();
  const half = [...Array(30).fill({ allowed: 0, coveredMs: 0 }), ...Array(30).fill({ allowed: 1, coveredMs: 60_000 })];
  expect(coverageWords(viewOf(half))).toBe("30 min of the last hour were counted; the rest is unknown.");
  // Three days and an eighth, out of three and a half.
  const most = [
    ...Array(300).fill({ allowed: 1, coveredMs: 900_000 }),
    ...Array(36).fill({ allowed: 0, coveredMs: 0 }),
  ];
  expect(coverageWords({ ...viewOf(most), window: "range", stepMs: 900_000 })).toBe(
    "89 % of 3 d were counted; the rest is unknown.",
  );
  const whole = viewOf(Array(60).fill({ allowed: 1, coveredMs: 60_000 }));
  const firstMs = whole.total.points[0]!.atMs;
  const asked = (fromMs: number) => ({ range: "custom" as const, fromMs, toMs: firstMs + 3_600_000 });
  expect(coverageWords(whole, asked(firstMs))).toBeUndefined();
  expect(coverageWords(whole, asked(firstMs - 86_400_000))).toMatch(/^What is kept begins on .+\.$/);
  const alone = Array.from({ length: 60 }, (_, i) => ({
    allowed: 1,
    coveredMs: 60_000,
    scope: (i >= 10 && i < 20 ? "instance" : "fleet") as Scope,
  }));
  expect(coverageWords(viewOf(alone))).toMatch(
    /^From \d\d:10 to \d\d:20 the history was away: there you see this instance alone\.$/,
  );
});
