/** Figures as rates per second, ready for charts: from the live stream or a window of the history. Pure. */
import type { Latency, StatsPoint, StatsView } from "../api/shapes.js";
import type { Feed, FeedPoint } from "../live/live-feed.js";
import type { ShownTime } from "../time/time-address.js";
import { dayTime, minuteTime, share, span as spanWords } from "./format.js";

type Values = readonly (number | null)[];

export interface TrafficPoints {
  readonly timesMs: readonly number[];
  readonly allowed: Values;
  readonly refused: Values;
  readonly shadowRefused: Values;
  readonly latency: readonly (Latency | null)[];
}

/** How long the stream may pause (a busy service) before the line is broken. */
const HOLE_MS = 5_000;

/** Rates per second in both cases: a step of the history is divided by its covered time. */
export function pointsOf(isLive: boolean, feed: Feed, stats: StatsView | undefined): TrafficPoints {
  if (isLive) {
    const points = withHoles(feed.points);
    return {
      timesMs: points.map(({ atMs }) => atMs),
      allowed: points.map(({ point }) => point?.allowed ?? null),
      refused: points.map(({ point }) => point?.refused ?? null),
      shadowRefused: points.map(({ point }) => point?.shadowRefused ?? null),
      latency: points.map(({ point }) => point?.latency ?? null),
    };
  }
  const points = stats?.total.points ?? [];
  return { ...ratesOf(points), latency: points.map((one) => (one.allowed + one.refused === 0 ? null : one)) };
}

/** Without a gap, a line across minutes without events would show traffic that was never counted. */
function withHoles(points: readonly FeedPoint[]): { atMs: number; point: FeedPoint | undefined }[] {
  return points.flatMap((point, i) => {
    const before = points[i - 1]?.atMs ?? point.atMs;
    const hole = point.atMs - before > HOLE_MS ? [{ atMs: before + 1, point: undefined }] : [];
    return [...hole, { atMs: point.atMs, point }];
  });
}

/** Null without coverage: unknown is not 0. */
export function rateOf(count: number, { coveredMs }: StatsPoint): number | null {
  return coveredMs === 0 ? null : (count * 1_000) / coveredMs;
}

export function ratesOf(points: readonly StatsPoint[]): Omit<TrafficPoints, "latency"> {
  return {
    timesMs: points.map(({ atMs }) => atMs),
    allowed: points.map((point) => rateOf(point.allowed, point)),
    refused: points.map((point) => rateOf(point.refused, point)),
    shadowRefused: points.map((point) => rateOf(point.shadowRefused, point)),
  };
}

/** Whether there is any coverage in the window. */
export function isCounted(stats: StatsView | undefined): stats is StatsView {
  return stats?.total.points.some(({ coveredMs }) => coveredMs > 0) ?? false;
}

function lengthWords(window: StatsView["window"], windowMs: number): string {
  return window === "hour" || window === "day" ? `the last ${window}` : spanWords(windowMs);
}

/** "3 h of the last day"; if rounding would make the part look like the whole, as a percentage. */
function partWords(coveredMs: number, windowMs: number, window: StatsView["window"]): string {
  const isAlike = spanWords(coveredMs) === spanWords(windowMs);
  return `${isAlike ? share(coveredMs / windowMs) : spanWords(coveredMs)} of ${lengthWords(window, windowMs)}`;
}

/** Where the data starts, if more was requested than is retained. */
function beginWords({ total: { points }, stepMs }: StatsView, time: ShownTime | undefined): string {
  const first = points[0];
  const isCut = time?.range === "custom" && first !== undefined && first.atMs - time.fromMs >= 2 * stepMs;
  return isCut ? `What is kept begins on ${dayTime(first.atMs)}.` : "";
}

/**
 * Describes a window's coverage: where it starts if later than requested (`time`), how much of it was counted, and how much by a single
 * instance only.
 */
export function coverageWords(stats: StatsView | undefined, time?: ShownTime): string | undefined {
  if (stats === undefined) return undefined;
  const { points } = stats.total;
  const coveredMs = points.reduce((sum, point) => sum + Math.min(point.coveredMs, stats.stepMs), 0);
  const windowMs = points.length * stats.stepMs;
  // The current step is never complete.
  const isWhole = coveredMs > windowMs - 2 * stats.stepMs;
  const counted = isWhole ? "" : `${partWords(coveredMs, windowMs, stats.window)} were counted; the rest is unknown.`;
  const own = points.filter(({ scope }) => scope === "instance");
  const alone =
    own.length === 0 || stats.scope === "instance"
      ? ""
      : `From ${minuteTime(own[0]!.atMs)} to ${minuteTime(own.at(-1)!.atMs + stats.stepMs)} the history was away: there you see this instance alone.`;
  return [beginWords(stats, time), counted, alone].filter(Boolean).join(" ") || undefined;
}
