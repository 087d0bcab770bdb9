/**
 * An instance's report on its region, and the view of all regions computed from the reports.
 * In: counts since the start, the instances' reports. Out: rates, the view. Pure: time is an argument.
 */
import type { RegionStats } from "sluice";
import type { RegionView } from "../views/regions.js";

/** Counts since the instance started. */
export interface RegionCounts {
  /** Over all rules. */
  readonly allowed: number;
  readonly refused: number;
  readonly stats: RegionStats;
}

/** One instance's figures for the seconds since its last report. */
export interface RegionReport {
  readonly region: string;
  readonly instance: string;
  readonly atMs: number;
  readonly requestsPerSecond: number;
  readonly refusedPerSecond: number;
  readonly globalPerSecond: number;
  readonly waitedPerSecond: number;
  readonly byPolicyPerSecond: number;
  readonly fetchesPerSecond: number;
  readonly units: number;
  readonly pools: number;
  /** 0 before the global store was first reached. */
  readonly roundTripMs: number;
  /** Set while the global store does not answer. */
  readonly cutOffSinceMs?: number;
}

interface Reading {
  readonly atMs: number;
  readonly counts: RegionCounts;
}

/** The rates between two readings of an instance. `cutOffSinceMs`: since when its reports have failed to reach the global store. */
export function reportOf(
  { instance, cutOffSinceMs }: { instance: string; cutOffSinceMs: number | undefined },
  { before, now }: { before: Reading; now: Reading },
): RegionReport {
  // If the clock was set back, report no rates rather than negative ones.
  const seconds = Math.max(0, now.atMs - before.atMs) / 1_000;
  const perSecond = (count: (counts: RegionCounts) => number): number =>
    seconds === 0 ? 0 : Math.round((10 * (count(now.counts) - count(before.counts))) / seconds) / 10;
  const { region, units, pools, roundTripMs, cutOffSinceMs: failedSinceMs } = now.counts.stats;
  const sinceMs = earliest([cutOffSinceMs, failedSinceMs]);
  return {
    region,
    instance,
    atMs: now.atMs,
    requestsPerSecond: perSecond(({ allowed, refused }) => allowed + refused),
    refusedPerSecond: perSecond(({ refused }) => refused),
    globalPerSecond: perSecond(({ stats }) => stats.requests),
    waitedPerSecond: perSecond(({ stats }) => stats.waited),
    byPolicyPerSecond: perSecond(({ stats }) => stats.cutOffRequests),
    fetchesPerSecond: perSecond(({ stats }) => stats.fetches),
    units,
    pools,
    roundTripMs: Math.round(10 * roundTripMs) / 10,
    ...(sinceMs !== undefined && { cutOffSinceMs: sinceMs }),
  };
}

/** Parses another instance's report, possibly of another version: missing numbers are 0. Undefined if it is not a report. */
export function readReport(given: unknown): RegionReport | undefined {
  const report = given as Partial<RegionReport> | null | undefined;
  if (typeof report?.region !== "string" || typeof report.instance !== "string") return undefined;
  const { region, instance, cutOffSinceMs } = report;
  const number = (value: unknown): number => (typeof value === "number" && value >= 0 ? value : 0);
  return {
    region,
    instance,
    atMs: number(report.atMs),
    requestsPerSecond: number(report.requestsPerSecond),
    refusedPerSecond: number(report.refusedPerSecond),
    globalPerSecond: number(report.globalPerSecond),
    waitedPerSecond: number(report.waitedPerSecond),
    byPolicyPerSecond: number(report.byPolicyPerSecond),
    fetchesPerSecond: number(report.fetchesPerSecond),
    units: number(report.units),
    pools: number(report.pools),
    roundTripMs: number(report.roundTripMs),
    ...(typeof cutOffSinceMs === "number" && { cutOffSinceMs }),
  };
}

/** `seen`: when each region was last seen, within a day. Those without a report are silent. */
export function regionViews(reports: readonly RegionReport[], seen: ReadonlyMap<string, number>): RegionView[] {
  const byRegion = new Map<string, RegionReport[]>([...seen.keys()].map((region) => [region, []]));
  for (const report of reports) {
    const known = byRegion.get(report.region);
    if (known === undefined) byRegion.set(report.region, [report]);
    else known.push(report);
  }
  return [...byRegion]
    .map(([region, own]) => viewOf(region, own, seen.get(region)))
    .sort((a, b) => (a.region < b.region ? -1 : 1));
}

function viewOf(region: string, reports: readonly RegionReport[], seenMs: number | undefined): RegionView {
  const sum = (of: (report: RegionReport) => number): number =>
    Math.round(10 * reports.reduce((total, report) => total + of(report), 0)) / 10;
  const cutOff = reports.flatMap(({ cutOffSinceMs }) => cutOffSinceMs ?? []);
  const state = reports.length === 0 ? "silent" : cutOff.length === reports.length ? "cut-off" : "up";
  const sinceMs = state === "up" ? undefined : state === "silent" ? seenMs : earliest(cutOff);
  const roundTrips = reports.map(({ roundTripMs }) => roundTripMs).filter((ms) => ms > 0);
  return {
    region,
    state,
    ...(sinceMs !== undefined && { sinceMs }),
    instances: reports.length,
    cutOffInstances: cutOff.length,
    requestsPerSecond: sum((report) => report.requestsPerSecond),
    refusedPerSecond: sum((report) => report.refusedPerSecond),
    globalPerSecond: sum((report) => report.globalPerSecond),
    waitedPerSecond: sum((report) => report.waitedPerSecond),
    byPolicyPerSecond: sum((report) => report.byPolicyPerSecond),
    fetchesPerSecond: sum((report) => report.fetchesPerSecond),
    units: sum((report) => report.units),
    pools: sum((report) => report.pools),
    ...(roundTrips.length > 0 && { roundTripMs: median(roundTrips) }),
  };
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((ms) => ms !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;
}
