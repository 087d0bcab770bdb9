/**
 * Compares a candidate with its live rule on the same requests: how often both allowed, both refused, or only one refused.
 * Each form of a rule has its own series in the history: when the candidate's or the live numbers change, the comparison starts anew, so
 * neither side includes requests from before.
 */
import { createHash } from "node:crypto";
import type { CheckResult, Limiter, Rule } from "sluice";
import type { Counted } from "./history/history.js";

/** In the order of the cells. */
export const comparisonNames: readonly Counted[] = [
  "bothAllowed",
  "bothRefused",
  "onlyLiveRefused",
  "onlyCandidateRefused",
];

const found = new WeakMap<Rule, string>();

/** Contains a colon, which no rule id does. Undefined: the rule has no candidate. */
export function comparisonSeries(rule: Rule): string | undefined {
  if (rule.candidate === undefined) return undefined;
  let series = found.get(rule);
  if (series === undefined) {
    const { description: _, ...form } = rule;
    const text = JSON.stringify(Object.entries(form).sort(([a], [b]) => (a < b ? -1 : 1)));
    series = `${rule.id}:${createHash("sha256").update(text).digest("base64url").slice(0, 8)}`;
    found.set(rule, series);
  }
  return series;
}

export function isComparison(series: string): boolean {
  return series !== "rule:total" && series.includes(":");
}

/** Comparisons of the rules in force. If a rule changes several times in a row, the counts of the last few forms are kept. */
export class Comparisons {
  readonly #rules: () => readonly Rule[];
  #known: readonly Rule[] = [];
  #cells = new Map<string, Float64Array>();
  readonly #bySeries = new Map<string, Float64Array>();

  constructor(limiter: Pick<Limiter, "rules">) {
    this.#rules = () => limiter.rules;
  }

  /** `candidate`: one of `checks`, in candidate mode. */
  add(candidate: CheckResult, checks: readonly CheckResult[]): void {
    const live = checks.find((check) => check.rule === candidate.rule && check.mode !== "candidate");
    const cells = this.#cellsOf(candidate.rule);
    if (live === undefined || cells === undefined) return;
    const cell = live.allowed ? (candidate.allowed ? 0 : 3) : candidate.allowed ? 2 : 1;
    cells[cell]!++;
  }

  *read(): Generator<[series: string, cells: Float64Array]> {
    yield* this.#bySeries;
  }

  #cellsOf(rule: string): Float64Array | undefined {
    if (this.#known !== this.#rules()) this.#learn(this.#rules());
    return this.#cells.get(rule);
  }

  #learn(rules: readonly Rule[]): void {
    this.#known = rules;
    this.#cells = new Map();
    for (const rule of rules) {
      const series = comparisonSeries(rule);
      if (series === undefined || this.#cells.size === MOST_COMPARISONS) continue;
      const cells = this.#bySeries.get(series) ?? new Float64Array(comparisonNames.length);
      this.#bySeries.delete(series);
      this.#bySeries.set(series, cells);
      this.#cells.set(rule.id, cells);
    }
    // Evicts the oldest, but never those in force.
    for (const series of this.#bySeries.keys()) {
      if (this.#bySeries.size <= 2 * MOST_COMPARISONS) break;
      this.#bySeries.delete(series);
    }
  }
}

/** Further candidates are not compared. */
const MOST_COMPARISONS = 200;
