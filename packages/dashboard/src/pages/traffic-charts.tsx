/** The two charts of traffic, over the live stream or over a window of the history. */
import { useMemo } from "react";
import type { Latency, LiveView, RuleStats, StatsPoint, StatsView } from "../api/shapes.js";
import type { Feed } from "../live/live-feed.js";
import { Chart, type Line } from "../parts/chart.js";
import { milliseconds, rate } from "../parts/format.js";
import { Empty } from "../parts/panel.js";

type Values = readonly (number | null)[];

export interface TrafficPoints {
  readonly timesMs: readonly number[];
  readonly allowed: Values;
  readonly refused: Values;
  readonly shadowRefused: Values;
  readonly latency: readonly (Latency | null)[];
}

/** Seconds that the stream may leave out (a busy service) before the line is broken. */
const HOLE_MS = 5_000;

/** Rates a second either way: a step of the history is divided by its length. */
export function pointsOf(span: "live" | "hour" | "day", feed: Feed, stats: StatsView | undefined): TrafficPoints {
  if (span === "live") {
    const points = withHoles(feed.points);
    return {
      timesMs: points.map(({ atMs }) => atMs),
      allowed: points.map(({ view }) => view?.allowedPerSecond ?? null),
      refused: points.map(({ view }) => view?.refusedPerSecond ?? null),
      shadowRefused: points.map(({ view }) => view?.shadowRefusedPerSecond ?? null),
      latency: points.map(({ view }) => view?.latency ?? null),
    };
  }
  const points = stats?.total.points ?? [];
  return { ...ratesOf(points, stats?.stepMs ?? 1_000), latency: points };
}

/** A line across minutes in which nobody listened would show traffic that nobody saw. */
function withHoles(points: readonly LiveView[]): { atMs: number; view: LiveView | undefined }[] {
  return points.flatMap((view, i) => {
    const before = points[i - 1]?.atMs ?? view.atMs;
    const hole = view.atMs - before > HOLE_MS ? [{ atMs: before + 1, view: undefined }] : [];
    return [...hole, { atMs: view.atMs, view }];
  });
}

function ratesOf(points: readonly StatsPoint[], stepMs: number): Omit<TrafficPoints, "latency"> {
  const perSecond = (value: number) => (value * 1_000) / stepMs;
  return {
    timesMs: points.map(({ atMs }) => atMs),
    allowed: points.map((point) => perSecond(point.allowed)),
    refused: points.map((point) => perSecond(point.refused)),
    shadowRefused: points.map((point) => perSecond(point.shadowRefused)),
  };
}

const perSecond = (value: number): string => `${rate(value)}/s`;

export function TrafficChart({ points }: { points: TrafficPoints }) {
  const lines = useMemo<Line[]>(
    () => [
      { mark: "allowed", label: "Allowed", values: points.allowed, isArea: true },
      { mark: "refused", label: "Refused", values: points.refused, isArea: true },
      { mark: "shadow", label: "Shadow-refused", values: points.shadowRefused, isDashed: true },
    ],
    [points],
  );
  if (points.timesMs.length === 0) return <Empty title="Nothing to draw yet." />;
  return <Chart label="Decisions a second" timesMs={points.timesMs} lines={lines} format={perSecond} height={240} />;
}

export function LatencyChart({ points }: { points: TrafficPoints }) {
  const lines = useMemo<Line[]>(
    () => [
      { mark: "latency", label: "Median", values: points.latency.map((one) => one?.p50Ms ?? null), isArea: true },
      { mark: "candidate", label: "99 of 100 within", values: points.latency.map((one) => one?.p99Ms ?? null) },
    ],
    [points],
  );
  if (points.timesMs.length === 0) return <Empty title="Nothing to draw yet." />;
  return <Chart label="Latency" timesMs={points.timesMs} lines={lines} format={milliseconds} height={180} />;
}

/** One rule's checks, with what its candidate would have refused. */
export function RuleChart({ stats, stepMs }: { stats: RuleStats | undefined; stepMs: number }) {
  const points = stats?.points ?? [];
  const hasCandidate = (stats?.candidateAllowed ?? 0) + (stats?.candidateRefused ?? 0) > 0;
  const lines = useMemo<Line[]>(() => {
    const { allowed, refused, shadowRefused } = ratesOf(points, stepMs);
    return [
      { mark: "allowed", label: "Allowed", values: allowed, isArea: true },
      { mark: "refused", label: "Refused", values: refused, isArea: true },
      { mark: "shadow", label: "Shadow-refused", values: shadowRefused, isDashed: true },
      ...(hasCandidate
        ? [
            {
              mark: "candidate" as const,
              label: "Candidate would refuse",
              values: points.map((point) => (point.candidateRefused * 1_000) / stepMs),
              isDashed: true,
            },
          ]
        : []),
    ];
  }, [points, stepMs, hasCandidate]);
  const timesMs = useMemo(() => points.map(({ atMs }) => atMs), [points]);
  if (points.length === 0) return <Empty title="No traffic in this time." />;
  return <Chart label="Checks a second" timesMs={timesMs} lines={lines} format={perSecond} height={210} />;
}
