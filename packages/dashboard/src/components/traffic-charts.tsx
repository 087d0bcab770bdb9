/** The two traffic charts, from the live stream or a window of the history. */
import { useMemo } from "react";
import type { RuleStats } from "../api/shapes.js";
import { Chart, type Line } from "./chart.js";
import { axisRate, milliseconds, rate } from "./format.js";
import type { Marker } from "./markers.js";
import { Empty } from "./panel.js";
import { rateOf, ratesOf, type TrafficPoints } from "./traffic-points.js";

const isKnown = (value: unknown): boolean => value !== null;
const perSecond = (value: number): string => `${rate(value)}/s`;

/** The same period a day or a week earlier, shifted to the chart's times. */
export interface BeforeLines {
  readonly label: string;
  readonly allowed: (atMs: number) => number | null;
  readonly refused: (atMs: number) => number | null;
}

interface OverTime {
  readonly markers?: readonly Marker[];
  readonly onZoom?: (fromMs: number, toMs: number) => void;
}

function beforeLines(before: BeforeLines | undefined, timesMs: readonly number[]): Line[] {
  if (before === undefined) return [];
  return [
    { mark: "before", label: `Allowed ${before.label}`, values: timesMs.map(before.allowed) },
    { mark: "before", label: `Refused ${before.label}`, values: timesMs.map(before.refused), isDashed: true },
  ];
}

export function TrafficChart({
  points,
  before,
  ...over
}: { points: TrafficPoints; before?: BeforeLines | undefined } & OverTime) {
  const lines = useMemo<Line[]>(
    () => [
      ...beforeLines(before, points.timesMs),
      { mark: "allowed", label: "Allowed", values: points.allowed, isArea: true },
      { mark: "refused", label: "Refused", values: points.refused, isArea: true },
      { mark: "shadow", label: "Shadow-refused", values: points.shadowRefused, isDashed: true },
    ],
    [points, before],
  );
  if (!points.allowed.some(isKnown)) return <Empty title="Nothing was counted in this time." />;
  return (
    <Chart
      label="Decisions a second"
      timesMs={points.timesMs}
      lines={lines}
      format={perSecond}
      axisFormat={axisRate}
      height={240}
      {...over}
    />
  );
}

export function LatencyChart({ points, ...over }: { points: TrafficPoints } & OverTime) {
  const lines = useMemo<Line[]>(
    () => [
      { mark: "latency", label: "p50", values: points.latency.map((one) => one?.p50Ms ?? null), isArea: true },
      { mark: "shadow", label: "p95", values: points.latency.map((one) => one?.p95Ms ?? null) },
      { mark: "candidate", label: "p99", values: points.latency.map((one) => one?.p99Ms ?? null) },
    ],
    [points],
  );
  if (!points.latency.some(isKnown)) return <Empty title="No request in this time." />;
  return <Chart label="Latency" timesMs={points.timesMs} lines={lines} format={milliseconds} height={180} {...over} />;
}

/** One rule's checks, and what its candidate would have refused. */
export function RuleChart({
  stats,
  isCounted,
  before,
  ...over
}: { stats: RuleStats | undefined; isCounted: boolean; before?: BeforeLines | undefined } & OverTime) {
  const points = stats?.points ?? [];
  const hasCandidate = (stats?.candidateAllowed ?? 0) + (stats?.candidateRefused ?? 0) > 0;
  const lines = useMemo<Line[]>(() => {
    const { timesMs: times, allowed, refused, shadowRefused } = ratesOf(points);
    return [
      ...beforeLines(before, times),
      { mark: "allowed", label: "Allowed", values: allowed, isArea: true },
      { mark: "refused", label: "Refused", values: refused, isArea: true },
      { mark: "shadow", label: "Shadow-refused", values: shadowRefused, isDashed: true },
      ...(hasCandidate
        ? [
            {
              mark: "candidate" as const,
              label: "Candidate would refuse",
              values: points.map((point) => rateOf(point.candidateRefused, point)),
              isDashed: true,
            },
          ]
        : []),
    ];
  }, [points, hasCandidate, before]);
  const timesMs = useMemo(() => points.map(({ atMs }) => atMs), [points]);
  if (points.length === 0) return <Empty title={isCounted ? "No traffic in this time." : "Unknown."} />;
  return (
    <Chart
      label="Checks a second"
      timesMs={timesMs}
      lines={lines}
      format={perSecond}
      axisFormat={axisRate}
      height={210}
      {...over}
    />
  );
}
