/**
 * Reads the figures of the admin API: the last two minutes, hour or day, and the second that has just ended everywhere.
 * Read from the history that all instances share. Where that cannot be read, or has nothing of a step, this instance tells what it counted itself.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Rule } from "sluice";
import type { Heartbeat, InstanceReport } from "../instance/heartbeat.js";
import { comparisonNames, comparisonSeries, isComparison } from "./candidate-comparison.js";
import {
  type Counted,
  type History,
  type Point,
  ruleOfSeries,
  type Step,
  stepAt,
  steps,
  TOTAL_SERIES,
} from "./history/history.js";
import { addCounts, type Counts } from "./history/packed-counts.js";
import { latencyNames, latencyOf } from "./latency-buckets.js";
import type {
  ComparisonView,
  Latency,
  LiveView,
  OutageView,
  RuleStats,
  Scope,
  StatsPoint,
  StatsSpan,
  StatsView,
} from "./views.js";

/** The sources of a view beside the history. */
export interface StatsSources {
  readonly history: History;
  /** This instance's own counts, in memory; absent if `history` is that. */
  readonly own: History | undefined;
  readonly storeKind: string;
  rules(): readonly Rule[];
  rulesVersion(): number;
  readonly heartbeat: Pick<Heartbeat, "report" | "readAll">;
  /** Of this instance's store; undefined while it answers. */
  outage(): OutageView | undefined;
  alertsFiring(): number;
}

type Series = ReadonlyMap<string, readonly Point[]>;

const windows: Readonly<Record<StatsSpan, { step: Step; lengthMs: number }>> = {
  live: { step: "second", lengthMs: 110_000 },
  hour: { step: "minute", lengthMs: 3_600_000 },
  day: { step: "quarter", lengthMs: 24 * 3_600_000 },
};
const MOST_RULES = 1_000;
const RULES_AT_ONCE = 50;
const MOST_LIVE_RULES = 20;
/** By then every instance has reported the second. */
const LIVE_DELAY_MS = 2_000;

interface Steps {
  readonly step: Step;
  readonly fromMs: number;
  readonly toMs: number;
  readonly nowMs: number;
}

export async function readStats(
  sources: StatsSources,
  asked: { window: StatsSpan; rule?: string | undefined },
): Promise<StatsView> {
  const { step, lengthMs } = windows[asked.window];
  const stepMs = steps[step].lengthMs;
  const atMs = Date.now();
  const toMs = stepAt(step, asked.window === "live" ? atMs - LIVE_DELAY_MS : atMs) + stepMs;
  const range: Steps = { step, fromMs: toMs - lengthMs, toMs, nowMs: atMs };
  const { series, scope, present, ownSteps } = await readFleetOrOwn(sources, range);
  const total = series.get(TOTAL_SERIES) ?? [];
  const sum = sumOf(total);
  const covered = coverage(total, range);
  const pointsOf = (points: readonly Point[]): (StatsPoint & { counts: Counts })[] => {
    const byStart = new Map(points.map((point) => [point.atMs, point.counts]));
    return covered.map(({ startMs, coveredMs }) => {
      const counts = byStart.get(startMs) ?? {};
      const own: Scope = ownSteps.has(startMs) ? "instance" : "fleet";
      return { ...pointOf(startMs, counts), coveredMs, scope: own, counts };
    });
  };
  const candidates = new Map(sources.rules().map((rule) => [rule.id, comparisonSeries(rule)]));
  const rules: RuleStats[] = [];
  for (const [name, points] of series) {
    const rule = isComparison(name) ? undefined : ruleOfSeries(name);
    if (rule === undefined || (asked.rule !== undefined && rule !== asked.rule)) continue;
    const compared = candidates.get(rule);
    rules.push({
      ...ruleStats(rule, sumOf(points)),
      ...(asked.rule === rule && { points: pointsOf(points).map(({ counts: _, ...point }) => point) }),
      ...(compared !== undefined && { comparison: comparisonOf(series.get(compared) ?? []) }),
    });
    // Checks are answered meanwhile.
    if (rules.length % RULES_AT_ONCE === 0) await nextTurn();
  }
  return {
    atMs,
    window: asked.window,
    scope,
    stepMs,
    instances: present.length,
    rulesVersion: sources.rulesVersion(),
    total: {
      allowed: sum.allowed ?? 0,
      refused: sum.refused ?? 0,
      shadowRefused: sum.shadowRefused ?? 0,
      degraded: sum.degraded ?? 0,
      unmatched: sum.unmatched ?? 0,
      latency: latencyIn(sum),
      points: pointsOf(total).map(({ counts, ...point }) => ({ ...point, ...latencyIn(counts) })),
    },
    rules: rules.sort((a, b) => b.allowed + b.refused - a.allowed - a.refused).slice(0, MOST_RULES),
  };
}

export async function readLive(sources: StatsSources): Promise<LiveView> {
  const atMs = stepAt("second", Date.now() - LIVE_DELAY_MS);
  const range: Steps = { step: "second", fromMs: atMs, toMs: atMs + 1, nowMs: Date.now() };
  const { series, scope, present, ownSteps } = await readFleetOrOwn(sources, range);
  const total = series.get(TOTAL_SERIES)?.[0]?.counts ?? {};
  // Of an instance that was late, several seconds come as one.
  const seconds = Math.max(1, total.seconds ?? 1);
  const perSecond = (count = 0): number => Math.round(count / seconds);
  const rules = [...series].flatMap(([name, [point]]) => {
    const rule = isComparison(name) ? undefined : ruleOfSeries(name);
    if (rule === undefined) return [];
    return [{ rule, allowed: perSecond(point?.counts.allowed), refused: perSecond(point?.counts.refused) }];
  });
  const outage = sources.outage();
  const away = present.filter(({ store }) => store === "degraded").length;
  const degradedInstances = Math.max(away, outage === undefined ? 0 : 1);
  return {
    atMs,
    scope: ownSteps.has(atMs) ? "instance" : scope,
    instances: present.length,
    rulesVersion: sources.rulesVersion(),
    allowedPerSecond: perSecond(total.allowed),
    refusedPerSecond: perSecond(total.refused),
    shadowRefusedPerSecond: perSecond(total.shadowRefused),
    degradedPerSecond: perSecond(total.degraded),
    unmatchedPerSecond: perSecond(total.unmatched),
    latency: latencyIn(total),
    eventLoopUtilisation: Math.max(0, ...present.map(({ eventLoopUtilisation }) => eventLoopUtilisation)),
    store: {
      kind: sources.storeKind,
      state: degradedInstances > 0 ? "degraded" : "up",
      degradedInstances,
      ...(outage !== undefined && { outage }),
    },
    rules: rules.sort((a, b) => b.allowed + b.refused - a.allowed - a.refused).slice(0, MOST_LIVE_RULES),
    alertsFiring: sources.alertsFiring(),
  };
}

interface Found {
  readonly series: Series;
  readonly scope: Scope;
  readonly present: readonly InstanceReport[];
  /** Steps that this instance alone told. */
  readonly ownSteps: ReadonlySet<number>;
}

async function readFleetOrOwn({ history, own, heartbeat }: StatsSources, { step, ...range }: Steps): Promise<Found> {
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
  // A Redis that is full answers reads and refuses writes: then not even this instance is heard of.
  const present = heard.length === 0 ? [heartbeat.report(Date.now())] : heard;
  // The newest step may not be written yet: that is no hole.
  const newestMs = stepAt(step, range.nowMs - LIVE_DELAY_MS);
  const known = new Set((series.get(TOTAL_SERIES) ?? []).map(({ atMs }) => atMs));
  const ownSteps = new Set(
    (mine.get(TOTAL_SERIES) ?? []).flatMap(({ atMs }) => (known.has(atMs) || atMs > newestMs ? [] : [atMs])),
  );
  return { series: ownSteps.size === 0 ? series : filled(series, mine, ownSteps), scope: "fleet", present, ownSteps };
}

/** The history's steps, and this instance's where the history has nothing. */
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

/** For each step, how much of it was counted. Steps that an older version wrote say nothing of it: they count as whole. */
function coverage(
  total: readonly Point[],
  { step, fromMs, toMs, nowMs }: Steps,
): { startMs: number; coveredMs: number }[] {
  const { lengthMs } = steps[step];
  const byStart = new Map(total.map(({ atMs, counts }) => [atMs, counts]));
  return Array.from({ length: Math.round((toMs - fromMs) / lengthMs) }, (_, i) => {
    const startMs = fromMs + i * lengthMs;
    const counts = byStart.get(startMs);
    const elapsedMs = Math.min(lengthMs, Math.max(0, nowMs - startMs));
    if (counts === undefined) return { startMs, coveredMs: 0 };
    const countedMs = counts.seconds === undefined ? elapsedMs : counts.seconds * 1_000;
    // A second of an instance that was late holds several; a minute never holds more than a minute.
    return { startMs, coveredMs: step === "second" ? countedMs : Math.min(countedMs, lengthMs) };
  });
}

function ruleStats(rule: string, sum: Counts): RuleStats {
  const { allowed = 0, refused = 0, shadowRefused = 0, candidateAllowed = 0, candidateRefused = 0 } = sum;
  return {
    rule,
    allowed,
    refused,
    shadowRefused,
    candidateAllowed,
    candidateRefused,
    violationRate: refused === 0 ? 0 : refused / (allowed + refused),
    utilisation: Array.from({ length: 10 }, (_, i) => sum[`use0${i}` as Counted] ?? 0),
  };
}

function comparisonOf(points: readonly Point[]): ComparisonView {
  const sum = sumOf(points);
  const [bothAllowed, bothRefused, onlyLiveRefused, onlyCandidateRefused] = comparisonNames.map(
    (name) => sum[name] ?? 0,
  );
  return {
    ...(points[0] !== undefined && { sinceMs: points[0].atMs }),
    bothAllowed: bothAllowed!,
    bothRefused: bothRefused!,
    onlyLiveRefused: onlyLiveRefused!,
    onlyCandidateRefused: onlyCandidateRefused!,
  };
}

function pointOf(atMs: number, counts: Counts): Omit<StatsPoint, "coveredMs" | "scope"> {
  const {
    allowed = 0,
    refused = 0,
    shadowRefused = 0,
    candidateAllowed = 0,
    candidateRefused = 0,
    degraded = 0,
  } = counts;
  return { atMs, allowed, refused, shadowRefused, candidateAllowed, candidateRefused, degraded };
}

function latencyIn(counts: Counts): Latency {
  return latencyOf(latencyNames.map((name) => counts[name] ?? 0));
}

function sumOf(points: readonly { counts: Counts }[]): Counts {
  const sum: Record<string, number> = {};
  for (const { counts } of points) addCounts(sum, counts);
  return sum as Counts;
}
