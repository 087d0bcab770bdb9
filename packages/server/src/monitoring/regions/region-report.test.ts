import type { RegionStats } from "sluice";
import { expect, test } from "vitest";
import { type RegionCounts, type RegionReport, readReport, regionViews, reportOf } from "./region-report.js";

function countsOf(allowed: number, refused: number, more: Partial<RegionStats> = {}): RegionCounts {
  const none = { requests: 0, waited: 0, cutOffRequests: 0, fetches: 0, failedFetches: 0 };
  const stats = {
    region: "eu",
    regions: 2,
    ...none,
    units: 40,
    pools: 2,
    roundTripMs: 101.26,
    isCutOff: false,
    ...more,
  };
  return { allowed, refused, stats };
}

const about = { instance: "a", cutOffSinceMs: undefined };

function reportIn(region: string, more: Partial<RegionReport> = {}): RegionReport {
  const now = { atMs: 3_000, counts: countsOf(30, 10) };
  return { ...reportOf(about, { before: { atMs: 1_000, counts: countsOf(0, 0) }, now }), region, ...more };
}

test("rates are per second between two readings", () => {
  const before = { atMs: 1_000, counts: countsOf(100, 50, { requests: 10, fetches: 1 }) };
  const now = { atMs: 3_000, counts: countsOf(115, 50, { requests: 30, waited: 3, fetches: 2 }) };
  expect(reportOf(about, { before, now })).toEqual({
    region: "eu",
    instance: "a",
    atMs: 3_000,
    requestsPerSecond: 7.5,
    refusedPerSecond: 0,
    globalPerSecond: 10,
    waitedPerSecond: 1.5,
    byPolicyPerSecond: 0,
    fetchesPerSecond: 0.5,
    units: 40,
    pools: 2,
    roundTripMs: 101.3,
  });
});

test.each([0, -5_000])("a clock that moved by %i ms gives no rate", (byMs) => {
  const before = { atMs: 10_000, counts: countsOf(0, 0) };
  const now = { atMs: 10_000 + byMs, counts: countsOf(15, 5) };
  expect(reportOf(about, { before, now })).toMatchObject({ requestsPerSecond: 0, refusedPerSecond: 0 });
});

test("a region is cut off since its first failed fetch or report", () => {
  const before = { atMs: 1_000, counts: countsOf(0, 0) };
  const now = { atMs: 3_000, counts: countsOf(0, 0, { isCutOff: true, cutOffSinceMs: 2_000 }) };
  expect(reportOf({ instance: "a", cutOffSinceMs: 2_500 }, { before, now }).cutOffSinceMs).toBe(2_000);
  expect(reportOf({ instance: "a", cutOffSinceMs: 1_500 }, { before, now }).cutOffSinceMs).toBe(1_500);
});

test("a region's figures are the sums over its instances, its round trip the median", () => {
  const trips = [100, 0, 900, 120].map((roundTripMs, i) => reportIn("us", { instance: `${i}`, roundTripMs }));
  const [eu, us] = regionViews([...trips, reportIn("eu")], new Map());
  expect(eu).toMatchObject({ region: "eu", state: "up", instances: 1, requestsPerSecond: 20, refusedPerSecond: 5 });
  expect(us).toMatchObject({
    region: "us",
    instances: 4,
    requestsPerSecond: 80,
    units: 160,
    pools: 8,
    roundTripMs: 120,
  });
});

test("a region is cut off once none of its instances reaches home, since the first of them", () => {
  const cut = [5_000, 4_000].map((cutOffSinceMs, i) => reportIn("eu", { instance: `${i}`, cutOffSinceMs }));
  expect(regionViews([...cut, reportIn("eu")], new Map())[0]).toMatchObject({ state: "up", cutOffInstances: 2 });
  expect(regionViews(cut, new Map())[0]).toMatchObject({ state: "cut-off", sinceMs: 4_000, cutOffInstances: 2 });
});

test("a region without reports is silent since its last report", () => {
  const seen = new Map([
    ["eu", 7_000],
    ["ap", 6_000],
  ]);
  const views = regionViews([reportIn("eu")], seen);
  expect(views.map(({ region, state, sinceMs }) => [region, state, sinceMs])).toEqual([
    ["ap", "silent", 6_000],
    ["eu", "up", undefined],
  ]);
});

test("a report of another version counts with the fields it has; an invalid one does not", () => {
  expect(readReport({ region: "eu", instance: "a", units: 3, pools: "many" })).toMatchObject({ units: 3, pools: 0 });
  for (const given of [null, undefined, 7, "text", [], {}, { region: 1, instance: "a" }]) {
    expect(readReport(given)).toBeUndefined();
  }
});
