/**
 * Counts requests, and checks by rule, variant, mode, outcome and reason, on the path of every request.
 * Plain arrays, because a labelled counter costs a tenth of a decision; labels are added when the counts are read.
 * Counts only grow: to get one second's counts, read twice and subtract.
 */
import type { CheckMode, CheckResult, Decision, Degraded, Reason } from "sluice";
import type { Comparisons } from "./candidate-comparison.js";

const modes: readonly CheckMode[] = ["enforce", "shadow", "candidate"];
/** The first entry means "allowed". */
const reasons: readonly (Reason | "")[] = [
  "",
  "limit",
  "min-interval",
  "concurrency",
  "load",
  "cost-exceeds-limit",
  "blocked",
  "too-many-waiting",
  "store-unavailable",
];
const CELLS = modes.length * reasons.length;
/** Checks by the share of the limit in use after them, in tenths. */
const TENTHS = 10;

interface DecisionCount {
  readonly rule: string;
  /** "" for a rule without variants. */
  readonly variant: string;
  readonly mode: CheckMode;
  readonly outcome: "allowed" | "refused";
  readonly reason: Reason | "";
  readonly count: number;
}

/** One rule's totals over all its variants. */
export interface RuleTotals {
  readonly rule: string;
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  readonly candidateAllowed: number;
  readonly candidateRefused: number;
  readonly use: Float64Array;
  /** Turns that were booked (`maxWait`), and their total wait. */
  readonly turns: number;
  readonly waitMs: number;
}

interface RequestTotals {
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  /** Matched no rule, and passed for that reason. */
  readonly unmatched: number;
  readonly degraded: Readonly<Record<Degraded, number>>;
}

/** Rules and variants come and go over months, so cardinality is bounded: later ones are counted together. */
const MOST_RULES = 1_000;
const MOST_VARIANTS = 10;
const OTHER_RULES = "(other)";
const OTHER_VARIANTS = "(other)";

class RuleCounts {
  /** Checks without a variant, as most rules have. */
  readonly plain = new Float64Array(CELLS);
  readonly use = new Float64Array(TENTHS);
  readonly byVariant = new Map<string, Float64Array>();
  turns = 0;
  waitMs = 0;

  cellsOf(variant: string | undefined): Float64Array {
    if (variant === undefined) return this.plain;
    const known = this.byVariant.get(variant);
    if (known !== undefined) return known;
    const label = this.byVariant.size < MOST_VARIANTS ? variant : OTHER_VARIANTS;
    const cells = this.byVariant.get(label) ?? new Float64Array(CELLS);
    this.byVariant.set(label, cells);
    return cells;
  }

  *all(): Generator<[variant: string, cells: Float64Array]> {
    yield ["", this.plain];
    yield* this.byVariant;
  }
}

export class DecisionCounts {
  readonly #byRule = new Map<string, RuleCounts>();
  readonly #degraded: Record<Degraded, number> = { deny: 0, local: 0, allow: 0 };
  #allowed = 0;
  #refused = 0;
  #shadowRefused = 0;
  #unmatched = 0;
  readonly comparisons: Comparisons;

  constructor(comparisons: Comparisons) {
    this.comparisons = comparisons;
  }

  add({ allowed, degraded, checks }: Decision): void {
    if (allowed) this.#allowed++;
    else this.#refused++;
    if (degraded !== undefined) this.#degraded[degraded]++;
    if (checks.length === 0) this.#unmatched++;
    let shadowRefused = false;
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      this.#addCheck(check, degraded === undefined);
      if (check.mode === "enforce") continue;
      // If a failure policy answered, neither side has decided.
      if (check.mode === "shadow") shadowRefused ||= !check.allowed;
      else if (degraded === undefined) this.comparisons.add(check, checks);
    }
    if (shadowRefused) this.#shadowRefused++;
  }

  /** `isCounted`: by the store. Otherwise the limit's utilisation is unknown. */
  #addCheck(check: CheckResult, isCounted: boolean): void {
    const counts = this.#byRule.get(check.rule) ?? this.#countsOf(check.rule);
    const { mode } = check;
    const reason = check.allowed ? 0 : Math.max(1, reasons.indexOf(check.reason ?? "limit"));
    const row = mode === "enforce" ? 0 : mode === "shadow" ? 1 : 2;
    counts.cellsOf(check.variant)[row * reasons.length + reason]!++;
    if (row === 0 && isCounted) counts.use[tenthInUse(check)]!++;
    if (check.delayMs !== undefined && row === 0) {
      counts.turns++;
      counts.waitMs += check.delayMs;
    }
  }

  get requests(): RequestTotals {
    const degraded = { ...this.#degraded };
    return {
      allowed: this.#allowed,
      refused: this.#refused,
      shadowRefused: this.#shadowRefused,
      unmatched: this.#unmatched,
      degraded,
    };
  }

  *read(): Generator<DecisionCount> {
    for (const [rule, counts] of this.#byRule) {
      for (const [variant, cells] of counts.all()) {
        for (let i = 0; i < CELLS; i++) {
          const count = cells[i]!;
          if (count === 0) continue;
          const reason = reasons[i % reasons.length]!;
          const mode = modes[Math.floor(i / reasons.length)]!;
          yield { rule, variant, mode, outcome: reason === "" ? "allowed" : "refused", reason, count };
        }
      }
    }
  }

  *totals(): Generator<RuleTotals> {
    for (const [rule, counts] of this.#byRule) {
      const sums = { enforce: [0, 0], shadow: [0, 0], candidate: [0, 0] };
      for (const [, cells] of counts.all()) {
        for (let i = 0; i < CELLS; i++) {
          sums[modes[Math.floor(i / reasons.length)]!][i % reasons.length === 0 ? 0 : 1]! += cells[i]!;
        }
      }
      yield {
        rule,
        // Shadow checks always let the request pass.
        allowed: sums.enforce[0]! + sums.shadow[0]! + sums.shadow[1]!,
        refused: sums.enforce[1]!,
        shadowRefused: sums.shadow[1]!,
        candidateAllowed: sums.candidate[0]!,
        candidateRefused: sums.candidate[1]!,
        use: counts.use,
        turns: counts.turns,
        waitMs: counts.waitMs,
      };
    }
  }

  #countsOf(rule: string): RuleCounts {
    const label = this.#byRule.size < MOST_RULES ? rule : OTHER_RULES;
    const counts = this.#byRule.get(label) ?? new RuleCounts();
    this.#byRule.set(label, counts);
    return counts;
  }
}

function tenthInUse({ allowed, limit, remaining }: CheckResult): number {
  if (!allowed) return TENTHS - 1;
  const tenth = Math.floor((TENTHS * (limit - remaining)) / limit);
  return tenth < 0 ? 0 : tenth < TENTHS ? tenth : TENTHS - 1;
}
