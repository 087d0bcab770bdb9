/**
 * One window of the history, step by step: of all instances, or of this one if the history is unreachable or lacks a step.
 * In: the sources, a window or range. Out: series of counts, their scope, and the coverage of each step.
 */
import type { Rule } from "sluice";
import type { Heartbeat, InstanceReport } from "../instance/heartbeat.js";
import { type History, type Point, type Step, stepAt, stepNames, steps, TOTAL_SERIES } from "./history/history.js";
import { addCounts, type Counts } from "./history/packed-counts.js";
import type { OutageView } from "./views/stats.js";
import type { AskedTime, Scope, StatsSpan } from "./views/time.js";

/** A view's sources. */
export interface StatsSources {
  readonly history: History;
  /** This instance's own counts, in memory; absent if `history` is that already. */
  readonly own: History | undefined;
  readonly storeKind: string;
  rules(): readonly Rule[];
  rulesVersion(): number;
  readonly heartbeat: Pick<Heartbeat, "report" | "readAll">;
  /** This instance's view of the store; undefined while it answers. */
  outage(): OutageView | undefined;
  alertsFiring(): number;
}

type Series = ReadonlyMap<string, readonly Point[]>;

const windows: Readonly<Record<Exclude<StatsSpan, "range">, { step: Step; lengthMs: number }>> = {
  live: { step: "second", lengthMs: 110_000 },
  hour: { step: "minute", lengthMs: 3_600_000 },
  day: { step: "quarter", lengthMs: 24 * 3_600_000 },
};
/** By then every instance has reported the second. */
export const LIVE_DELAY_MS = 2_000;

export interface Range {
  readonly step: Step;
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
}

/** One step of a window: its coverage and scope. */
interface CoveredStep {
  readonly atMs: number;
  readonly coveredMs: number;
  readonly scope: Scope;
}

export interface ReadWindow extends Omit<Found, "ownSteps"> {
  readonly atMs: number;
  readonly stepMs: number;
  /** One per step of the window, even without traffic. */
  readonly covered: readonly CoveredStep[];
}

/** The steps of a window or range: the finest still retained for all of it. Whole steps, none in the future. */
export function stepsOf(asked: AskedTime, nowMs: number): Range {
  if (asked.window !== "range") {
    const { step, lengthMs } = windows[asked.window];
    const toMs = stepAt(step, asked.window === "live" ? nowMs - LIVE_DELAY_MS : nowMs) + steps[step].lengthMs;
    return { step, fromMs: toMs - lengthMs, toMs, nowMs };
  }
  const oldestMs = nowMs - steps.quarter.keepMs;
  const fromMs = Math.min(Math.max(asked.fromMs, oldestMs), nowMs - 1);
  const step = stepNames.find((name) => fromMs >= nowMs - steps[name].keepMs + steps[name].lengthMs) ?? "quarter";
  const { lengthMs } = steps[step];
  const lastMs = stepAt(step, Math.min(Math.max(asked.toMs, fromMs + 1), nowMs) - 1);
  return { step, fromMs: stepAt(step, fromMs), toMs: lastMs + lengthMs, nowMs };
}

export async function readWindow(sources: StatsSources, asked: AskedTime): Promise<ReadWindow> {
  const atMs = Date.now();
  const range = stepsOf(asked, atMs);
  const stepMs = steps[range.step].lengthMs;
  const { ownSteps, ...found } = await readFleetOrOwn(sources, range);
  const covered = coverage(found.series.get(TOTAL_SERIES) ?? [], range).map((one) => ({
    ...one,
    scope: ownSteps.has(one.atMs) ? ("instance" as const) : ("fleet" as const),
  }));
  return { ...found, atMs, stepMs, covered };
}

interface Found {
  readonly series: Series;
  readonly scope: Scope;
  readonly present: readonly InstanceReport[];
  /** Steps that only this instance can report. */
  readonly ownSteps: ReadonlySet<number>;
}

export async function readFleetOrOwn(
  { history, own, heartbeat }: StatsSources,
  { step, ...range }: Range,
): Promise<Found> {
  const [fleet, mine] = await Promise.all([
    Promise.all([history.read(step, range), heartbeat.readAll()]).catch((error: unknown) => {
      if (own === undefined) throw error;
      return undefined;
    }),
    own === undefined ? new Map<string, Point[]>() : own.read(step, range),
  ]);
  if (fleet === undefined) {
    const ownSteps = new Set((mine.get(TOTAL_SERIES) ?? []).map(({ atMs }) => atMs));
    return { series: mine, scope: "instance", present: [heartbeat.report(Date.now())], ownSteps };
  }
  const [series, heard] = fleet;
  // A full Redis answers reads and refuses writes: then even this instance's heartbeat is missing.
  const present = heard.length === 0 ? [heartbeat.report(Date.now())] : heard;
  // The newest step may not have been written yet, which is not a gap.
  const newestMs = stepAt(step, range.nowMs - LIVE_DELAY_MS);
  const known = new Set((series.get(TOTAL_SERIES) ?? []).map(({ atMs }) => atMs));
  const ownSteps = new Set(
    (mine.get(TOTAL_SERIES) ?? []).flatMap(({ atMs }) => (known.has(atMs) || atMs > newestMs ? [] : [atMs])),
  );
  return { series: ownSteps.size === 0 ? series : filled(series, mine, ownSteps), scope: "fleet", present, ownSteps };
}

/** The history's steps, with gaps filled by this instance's. */
function filled(series: Series, own: Series, ownSteps: ReadonlySet<number>): Series {
  const both = new Map(series);
  for (const [name, points] of own) {
    const missing = points.filter(({ atMs }) => ownSteps.has(atMs));
    if (missing.length === 0) continue;
    both.set(
      name,
      [...(series.get(name) ?? []), ...missing].sort((a, b) => a.atMs - b.atMs),
    );
  }
  return both;
}

/** The coverage of each step. Steps from older versions have none recorded: they count as fully covered. */
function coverage(
  total: readonly Point[],
  { step, fromMs, toMs, nowMs }: Range,
): { atMs: number; coveredMs: number }[] {
  const { lengthMs } = steps[step];
  const byStart = new Map(total.map(({ atMs, counts }) => [atMs, counts]));
  return Array.from({ length: Math.round((toMs - fromMs) / lengthMs) }, (_, i) => {
    const startMs = fromMs + i * lengthMs;
    const counts = byStart.get(startMs);
    const elapsedMs = Math.min(lengthMs, Math.max(0, nowMs - startMs));
    if (counts === undefined) return { atMs: startMs, coveredMs: 0 };
    const countedMs = counts.seconds === undefined ? elapsedMs : counts.seconds * 1_000;
    // A late instance's second may cover several; a minute never covers more than a minute.
    return { atMs: startMs, coveredMs: step === "second" ? countedMs : Math.min(countedMs, lengthMs) };
  });
}

export function sumOf(points: readonly { counts: Counts }[]): Counts {
  const sum: Record<string, number> = {};
  for (const { counts } of points) addCounts(sum, counts);
  return sum as Counts;
}
