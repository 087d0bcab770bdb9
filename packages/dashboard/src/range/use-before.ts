/** The preceding period, or the same one a day or a week earlier, for a faint comparison line. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { statsQuery } from "../api/queries.js";
import type { StatsPoint } from "../api/shapes.js";
import type { BeforeLines } from "../components/traffic-charts.js";
import { rateOf } from "../components/traffic-points.js";
import { type Compare, compareOffsetMs, type ShownTime } from "../time/time-address.js";

interface Compared {
  readonly time: ShownTime;
  readonly compare: Compare | undefined;
  readonly rule?: string;
}

export function useBefore({ time, compare, rule }: Compared): BeforeLines | undefined {
  const isOn = compare !== undefined && time.range !== "live";
  const offsetMs = isOn ? compareOffsetMs(compare, time) : 0;
  const asked = rule === undefined ? { time, offsetMs } : { time, offsetMs, rule };
  const { data } = useQuery({ ...statsQuery(asked), enabled: isOn });
  return useMemo(() => {
    if (!isOn || data === undefined) return undefined;
    const own = rule === undefined ? data.total.points : data.rules.find((one) => one.rule === rule)?.points;
    const at = stepReader(own ?? (data.complete ? data.total.points.map(nothing) : []), data.stepMs, offsetMs);
    return {
      label: compare === "span" ? "in the span before" : `a ${compare} before`,
      allowed: (atMs) => at(atMs, "allowed"),
      refused: (atMs) => at(atMs, "refused"),
    };
  }, [isOn, data, rule, offsetMs, compare]);
}

/** A rule without traffic has no points: unless rules are counted together, it had zero wherever there was coverage. */
function nothing(point: StatsPoint): StatsPoint {
  return { ...point, allowed: 0, refused: 0, shadowRefused: 0 };
}

/** The rate at an instant. Older steps are longer than the chart's, so each value applies to its whole step. Pure. */
function stepReader(points: readonly StatsPoint[], stepMs: number, offsetMs: number) {
  const byStart = new Map(points.map((point) => [point.atMs, point]));
  return (atMs: number, name: "allowed" | "refused"): number | null => {
    const wantedMs = atMs - offsetMs;
    const point = byStart.get(wantedMs - (wantedMs % stepMs));
    return point === undefined ? null : rateOf(point[name], point);
  };
}
