/**
 * The increase of all counts of `traffic.ts` since the last reading. Each reader has its own instance, so that readers do not affect each
 * other.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Limiter } from "sluice";
import { comparisonNames } from "./candidate-comparison.js";
import type { RuleTotals } from "./decision-counts.js";
import { type Counted, OTHER_SERIES, type SeriesCounts, seriesOfRule, TOTAL_SERIES } from "./history/history.js";
import { latencyNames } from "./latency-buckets.js";
import { readingNames } from "./load/load-readings.js";
import { modelNames } from "./spend/model-spend.js";
import type { Traffic } from "./traffic.js";

const RULES_AT_ONCE = 50;
/** A clock that jumps must not claim an hour of coverage. */
const MOST_SECONDS = 60;

/** In the order in which they are read below. */
const totalNames: readonly Counted[] = [
  "allowed",
  "refused",
  "shadowRefused",
  "degraded",
  "storeErrors",
  "unmatched",
  ...latencyNames,
];
const ruleNames: readonly Counted[] = [
  "allowed",
  "refused",
  "shadowRefused",
  "candidateAllowed",
  "candidateRefused",
  ...Array.from({ length: 10 }, (_, i): Counted => `use0${i}` as Counted),
  "turns",
  "waitMs",
];
const classNames: readonly Counted[] = ["allowed", "refused"];
const heldNames: readonly Counted[] = ["held", "settled", "overrun"];

interface CountedSpan {
  readonly counts: readonly SeriesCounts[];
  /** The time covered, in whole seconds. */
  readonly seconds: number;
}

export class CounterDeltas {
  readonly #traffic: Traffic;
  readonly #limiter: Limiter;
  readonly #before = new Map<string, readonly number[]>();
  #lastMs: number;

  constructor(traffic: Traffic, limiter: Limiter, nowMs: number) {
    this.#traffic = traffic;
    this.#limiter = limiter;
    this.#lastMs = nowMs;
  }

  /** In slices, so that checks are answered in between: there may be a thousand rules. */
  async next(nowMs: number): Promise<CountedSpan> {
    const seconds = Math.min(MOST_SECONDS, Math.max(1, Math.round((nowMs - this.#lastMs) / 1_000)));
    this.#lastMs = nowMs;
    const { decisions, requests, load, spend, models } = this.#traffic;
    const { allowed, refused, shadowRefused, unmatched, degraded } = decisions.requests;
    const byPolicy = degraded.allow + degraded.deny + degraded.local;
    const storeErrors = this.#limiter.storeStats()?.errors ?? 0;
    const total = [allowed, refused, shadowRefused, byPolicy, storeErrors, unmatched, ...requests.latencies()];
    const counts: SeriesCounts[] = [];
    this.#addSince(counts, { series: TOTAL_SERIES, names: totalNames, now: total });
    for (const [series, cells] of decisions.comparisons.read()) {
      this.#addSince(counts, { series, names: comparisonNames, now: [...cells] });
    }
    for (const [series, cells] of load.classes()) {
      this.#addSince(counts, { series, names: classNames, now: cells });
    }
    for (const [rule, cells] of load.rules()) {
      this.#addSince(counts, { series: seriesOf(rule), part: "load", names: readingNames, now: [...cells] });
    }
    for (const [rule, { held, charged, overrun }] of this.#limiter.reservationStats().rules) {
      this.#addSince(counts, { series: seriesOf(rule), part: "held", names: heldNames, now: [held, charged, overrun] });
    }
    for (const [rule, units] of spend.byRule()) {
      this.#addSince(counts, { series: seriesOf(rule), part: "spent", names: ["spent"], now: [units] });
    }
    for (const [series, cells] of models.read()) {
      this.#addSince(counts, { series, names: modelNames, now: [...cells] });
    }
    let rules = 0;
    for (const totals of decisions.totals()) {
      this.#addSince(counts, { series: seriesOf(totals.rule), names: ruleNames, now: valuesOf(totals) });
      if (++rules % RULES_AT_ONCE === 0) await nextTurn();
    }
    return { counts, seconds };
  }

  #addSince(
    counted: SeriesCounts[],
    read: { series: string; part?: string; names: readonly Counted[]; now: readonly number[] },
  ): void {
    const { series, part = "", names, now } = read;
    const name = `${part} ${series}`;
    const before = this.#before.get(name);
    this.#before.set(name, now);
    const counts: Partial<Record<Counted, number>> = {};
    let came = false;
    for (let i = 0; i < names.length; i++) {
      const difference = now[i]! - (before?.[i] ?? 0);
      if (difference <= 0) continue;
      counts[names[i]!] = difference;
      came = true;
    }
    if (came) counted.push({ series, counts });
  }
}

function seriesOf(rule: string): string {
  return rule === OTHER_SERIES ? OTHER_SERIES : seriesOfRule(rule);
}

function valuesOf(totals: RuleTotals): number[] {
  const { allowed, refused, shadowRefused, candidateAllowed, candidateRefused, use, turns, waitMs } = totals;
  return [allowed, refused, shadowRefused, candidateAllowed, candidateRefused, ...use, turns, waitMs];
}
