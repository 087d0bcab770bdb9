/**
 * What the admin API tells of the traffic, read from the history: the last hour or day, and the second that has just ended everywhere.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
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
import { PRESENCE_PREFIX, type Presence } from "./recorder.js";
import type { Latency, LiveView, RuleStats, StatsPoint, StatsView, StatsWindow } from "./views.js";

/** What a view needs beside the history. */
export interface StatsSources {
  readonly history: History;
  readonly storeKind: string;
  rulesVersion(): number;
  alertsFiring(): number;
}

const windows: Readonly<Record<StatsWindow, { step: Step; lengthMs: number }>> = {
  hour: { step: "minute", lengthMs: 3_600_000 },
  day: { step: "quarter", lengthMs: 24 * 3_600_000 },
};
const MOST_RULES = 1_000;
const RULES_AT_ONCE = 50;
const MOST_LIVE_RULES = 20;
/** By then every instance has reported the second. */
const LIVE_DELAY_MS = 2_000;

export async function readStats(
  sources: StatsSources,
  asked: { window: StatsWindow; rule?: string | undefined },
): Promise<StatsView> {
  const { step, lengthMs } = windows[asked.window];
  const stepMs = steps[step].lengthMs;
  const atMs = Date.now();
  const toMs = stepAt(step, atMs) + stepMs;
  const fromMs = toMs - lengthMs;
  const [series, present] = await Promise.all([
    sources.history.read(step, { fromMs, toMs }),
    readPresence(sources.history),
  ]);
  const pointsOf = (points: readonly Point[]): { atMs: number; counts: Counts }[] => {
    const byStart = new Map(points.map((point) => [point.atMs, point.counts]));
    return Array.from({ length: lengthMs / stepMs }, (_, i) => {
      const startMs = fromMs + i * stepMs;
      return { atMs: startMs, counts: byStart.get(startMs) ?? {} };
    });
  };
  const total = pointsOf(series.get(TOTAL_SERIES) ?? []);
  const sum = sumOf(total);
  const rules: RuleStats[] = [];
  for (const [name, points] of series) {
    const rule = ruleOfSeries(name);
    if (rule === undefined || (asked.rule !== undefined && rule !== asked.rule)) continue;
    const stats = ruleStats(rule, sumOf(points));
    const series = asked.rule === rule && pointsOf(points).map(({ atMs: startMs, counts }) => pointOf(startMs, counts));
    rules.push(series === false ? stats : { ...stats, points: series });
    // Checks are answered meanwhile.
    if (rules.length % RULES_AT_ONCE === 0) await nextTurn();
  }
  return {
    atMs,
    window: asked.window,
    stepMs,
    instances: present.length,
    rulesVersion: sources.rulesVersion(),
    total: {
      allowed: sum.allowed ?? 0,
      refused: sum.refused ?? 0,
      shadowRefused: sum.shadowRefused ?? 0,
      degraded: sum.degraded ?? 0,
      latency: latencyIn(sum),
      points: total.map((point) => ({ ...pointOf(point.atMs, point.counts), ...latencyIn(point.counts) })),
    },
    rules: rules.sort((a, b) => b.allowed + b.refused - a.allowed - a.refused).slice(0, MOST_RULES),
  };
}

export async function readLive(sources: StatsSources): Promise<LiveView> {
  const atMs = stepAt("second", Date.now() - LIVE_DELAY_MS);
  const [series, present] = await Promise.all([
    sources.history.read("second", { fromMs: atMs, toMs: atMs + 1 }),
    readPresence(sources.history),
  ]);
  const total = series.get(TOTAL_SERIES)?.[0]?.counts ?? {};
  const rules = [...series].flatMap(([name, [point]]) => {
    const rule = ruleOfSeries(name);
    return rule === undefined
      ? []
      : [{ rule, allowed: point?.counts.allowed ?? 0, refused: point?.counts.refused ?? 0 }];
  });
  return {
    atMs,
    instances: present.length,
    rulesVersion: sources.rulesVersion(),
    allowedPerSecond: total.allowed ?? 0,
    refusedPerSecond: total.refused ?? 0,
    shadowRefusedPerSecond: total.shadowRefused ?? 0,
    degradedPerSecond: total.degraded ?? 0,
    latency: latencyIn(total),
    eventLoopUtilisation: Math.max(0, ...present.map(({ eventLoopUtilisation }) => eventLoopUtilisation)),
    store: { kind: sources.storeKind, state: present.some(({ store }) => store === "degraded") ? "degraded" : "up" },
    rules: rules.sort((a, b) => b.allowed + b.refused - a.allowed - a.refused).slice(0, MOST_LIVE_RULES),
    alertsFiring: sources.alertsFiring(),
  };
}

/** Of every instance that was heard of lately. */
async function readPresence(history: History): Promise<Presence[]> {
  const texts = await history.readTexts(PRESENCE_PREFIX);
  return Array.from(texts.values(), (text) => JSON.parse(text) as Presence);
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

function pointOf(atMs: number, counts: Counts): StatsPoint {
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
