/**
 * Counts checks by rule, mode, outcome and reason, on the path of every request.
 * Plain arrays, because a labelled counter costs as much as a tenth of a decision; the labels are spelled when somebody reads them.
 */
import type { CheckMode, CheckResult, Reason } from "sluice";

const modes: readonly CheckMode[] = ["enforce", "shadow", "candidate"];
/** The first stands for "allowed". */
const reasons: readonly (Reason | "")[] = [
  "",
  "limit",
  "min-interval",
  "concurrency",
  "load",
  "cost-exceeds-limit",
  "store-unavailable",
];

export interface DecisionCount {
  readonly rule: string;
  readonly mode: CheckMode;
  readonly outcome: "allowed" | "refused";
  readonly reason: Reason | "";
  readonly count: number;
}

/** Rules come and go over months; what is read must stay small. Later ones are counted together. */
const MOST_RULES = 1_000;
export const OTHER_RULES = "(other)";

export class DecisionCounts {
  readonly #byRule = new Map<string, Float64Array>();

  add(check: CheckResult): void {
    const counts = this.#byRule.get(check.rule) ?? this.#countsOf(check.rule);
    const reason = check.allowed ? 0 : Math.max(1, reasons.indexOf(check.reason ?? "limit"));
    counts[modes.indexOf(check.mode) * reasons.length + reason]!++;
  }

  *read(): Generator<DecisionCount> {
    for (const [rule, counts] of this.#byRule) {
      for (let i = 0; i < counts.length; i++) {
        const count = counts[i]!;
        if (count === 0) continue;
        const reason = reasons[i % reasons.length]!;
        const mode = modes[Math.floor(i / reasons.length)]!;
        yield { rule, mode, outcome: reason === "" ? "allowed" : "refused", reason, count };
      }
    }
  }

  #countsOf(rule: string): Float64Array {
    const label = this.#byRule.size < MOST_RULES ? rule : OTHER_RULES;
    let counts = this.#byRule.get(label);
    if (counts === undefined) {
      counts = new Float64Array(modes.length * reasons.length);
      this.#byRule.set(label, counts);
    }
    return counts;
  }
}
