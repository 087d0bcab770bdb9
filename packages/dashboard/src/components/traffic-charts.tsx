/** The two charts of traffic, over the live stream or over a window of the history. */
import { useMemo } from "react";
import type { RuleStats } from "../api/shapes.js";
import { Chart, type Line } from "./chart.js";
import { milliseconds, rate } from "./format.js";
import { Empty } from "./panel.js";
import { rateOf, ratesOf, type TrafficPoints } from "./traffic-points.js";

const isKnown = (value: unknown): boolean => value !== null;
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
  if (!points.allowed.some(isKnown)) return <Empty title="Nothing was counted in this time." />;
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
  if (!points.latency.some(isKnown)) return <Empty title="No request in this time." />;
  return <Chart label="Latency" timesMs={points.timesMs} lines={lines} format={milliseconds} height={180} />;
}

/** One rule's checks, with what its candidate would have refused. */
export function RuleChart({ stats }: { stats: RuleStats | undefined }) {
  const points = stats?.points ?? [];
  const hasCandidate = (stats?.candidateAllowed ?? 0) + (stats?.candidateRefused ?? 0) > 0;
  const lines = useMemo<Line[]>(() => {
    const { allowed, refused, shadowRefused } = ratesOf(points);
    return [
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
  }, [points, hasCandidate]);
  const timesMs = useMemo(() => points.map(({ atMs }) => atMs), [points]);
  if (points.length === 0) return <Empty title="No traffic in this time." />;
  return <Chart label="Checks a second" timesMs={timesMs} lines={lines} format={perSecond} height={210} />;
}
