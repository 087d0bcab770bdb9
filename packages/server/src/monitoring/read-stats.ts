/**
 * Reads the admin API's figures: the last two minutes, hour or day, and the latest second that all instances have reported.
 * Reads the shared history. If that is unreachable, or lacks a step, uses what this instance counted itself.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { comparisonNames, comparisonSeries, isComparison } from "./candidate-comparison.js";
import { type Counted, OTHER_SERIES, type Point, ruleOfSeries, stepAt, TOTAL_SERIES } from "./history/history.js";
import type { Counts } from "./history/packed-counts.js";
import { latencyNames, latencyOf } from "./latency-buckets.js";
import { LIVE_DELAY_MS, type Range, readFleetOrOwn, readWindow, type StatsSources, sumOf } from "./read-window.js";
import type { ComparisonView, Latency, LiveView, RuleStats, StatsPoint, StatsView } from "./views/stats.js";
import type { AskedTime } from "./views/time.js";

const MOST_RULES = 1_000;
const RULES_AT_ONCE = 50;
const MOST_LIVE_RULES = 20;

export async function readStats(
  sources: StatsSources,
  asked: AskedTime & { rule?: string | undefined },
): Promise<StatsView> {
  const { atMs, stepMs, series, scope, present, covered } = await readWindow(sources, asked);
  const total = series.get(TOTAL_SERIES) ?? [];
  const sum = sumOf(total);
  const pointsOf = (points: readonly Point[]): (StatsPoint & { counts: Counts })[] => {
    const byStart = new Map(points.map((point) => [point.atMs, point.counts]));
    return covered.map((step) => {
      const counts = byStart.get(step.atMs) ?? {};
      return { ...pointOf(counts), ...step, counts };
    });
  };
  const candidates = new Map(sources.rules().map((rule) => [rule.id, comparisonSeries(rule)]));
  const rules: RuleStats[] = [];
  for (const [name, points] of series) {
    const rule = isComparison(name) ? undefined : ruleOfSeries(name);
    if (rule === undefined || (asked.rule !== undefined && rule !== asked.rule)) continue;
    const compared = candidates.get(rule);
    const own = ruleStats(rule, sumOf(points));
    // Load readings exist even without traffic.
    if (asked.rule === undefined && own.allowed + own.refused === 0) continue;
    rules.push({
      ...own,
      ...(asked.rule === rule && { points: pointsOf(points).map(({ counts: _, ...point }) => point) }),
      ...(compared !== undefined && { comparison: comparisonOf(series.get(compared) ?? []) }),
    });
    // Yield to the event loop.
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
    complete: !series.has(OTHER_SERIES) && rules.length <= MOST_RULES,
  };
}

export async function readLive(sources: StatsSources): Promise<LiveView> {
  const atMs = stepAt("second", Date.now() - LIVE_DELAY_MS);
  const range: Range = { step: "second", fromMs: atMs, toMs: atMs + 1, nowMs: Date.now() };
  const { series, scope, present, ownSteps } = await readFleetOrOwn(sources, range);
  const total = series.get(TOTAL_SERIES)?.[0]?.counts ?? {};
  // A late instance reports several seconds as one.
  const seconds = Math.max(1, total.seconds ?? 1);
  const perSecond = (count = 0): number => Math.round(count / seconds);
  const rules = [...series].flatMap(([name, [point]]) => {
    const rule = isComparison(name) ? undefined : ruleOfSeries(name);
    const { allowed, refused } = point?.counts ?? {};
    if (rule === undefined || (allowed ?? 0) + (refused ?? 0) === 0) return [];
    return [{ rule, allowed: perSecond(allowed), refused: perSecond(refused) }];
  });
  const outage = sources.outage();
  const away = present.filter(({ store }) => store === "degraded").length;
  const degradedInstances = Math.max(away, outage === undefined || outage.partial ? 0 : 1);
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
      state: degradedInstances > 0 || outage !== undefined ? "degraded" : "up",
      degradedInstances,
      ...(outage !== undefined && { outage }),
    },
    rules: rules.sort((a, b) => b.allowed + b.refused - a.allowed - a.refused).slice(0, MOST_LIVE_RULES),
    alertsFiring: sources.alertsFiring(),
  };
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

function pointOf(counts: Counts): Omit<StatsPoint, "atMs" | "coveredMs" | "scope"> {
  const {
    allowed = 0,
    refused = 0,
    shadowRefused = 0,
    candidateAllowed = 0,
    candidateRefused = 0,
    degraded = 0,
  } = counts;
  return { allowed, refused, shadowRefused, candidateAllowed, candidateRefused, degraded };
}

function latencyIn(counts: Counts): Latency {
  return latencyOf(latencyNames.map((name) => counts[name] ?? 0));
}
