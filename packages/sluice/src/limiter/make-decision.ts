/**
 * Makes the decision that a caller sees from the verdicts of its checks. Pure.
 */
import type { Verdict } from "../algorithms/model.js";
import type { Check } from "../check.js";
import type { CheckResult, DecisionSummary, Degraded, Guarantee, Reason } from "../decision.js";
import type { Lease } from "./lease.js";

/** What a refund needs to know of a decision. */
export interface Origin {
  readonly checks: readonly Check[];
  readonly verdicts: readonly Verdict[];
  readonly entryId: string;
  readonly nowMs: number;
  /** When each check was decided, where not all were at `nowMs`. */
  readonly timesMs: readonly number[] | undefined;
  readonly id: string | undefined;
  /** `local`: the fallback of this instance charged it; `nobody`: a policy answered without counting. */
  readonly charger: "store" | "local" | "nobody";
}

/**
 * The answer to a request. Its enumerable fields are the public JSON, in the order in which the constructor sets them.
 */
export class Decision implements DecisionSummary {
  declare readonly allowed: boolean;
  declare readonly rule?: string;
  declare readonly limit?: number;
  declare readonly remaining?: number;
  declare readonly retryAfterMs: number;
  declare readonly resetAfterMs: number;
  declare readonly reason?: Reason;
  declare readonly violated: readonly string[];
  declare readonly rulesVersion: number;
  declare readonly guarantee: Guarantee;
  declare readonly checks: readonly CheckResult[];
  /** Only where a concurrency rule holds a place. */
  declare readonly lease?: Lease;
  declare readonly degraded?: Degraded;
  readonly #origin: Origin;

  constructor(made: {
    origin: Origin;
    guarantee: Guarantee;
    rulesVersion: number;
    lease: Lease | undefined;
    degraded: Degraded | undefined;
  }) {
    const { checks, verdicts } = made.origin;
    const results: CheckResult[] = [];
    const violated: string[] = [];
    let speaker = -1;
    for (let i = 0; i < checks.length; i++) {
      const { plan } = checks[i]!;
      results.push(resultOf(checks[i]!, verdicts[i]!));
      if (plan.mode !== "enforce") continue;
      if (!verdicts[i]!.allowed) violated.push(plan.rule);
      if (speaker < 0 || speaksBefore(checks, verdicts, i, speaker)) speaker = i;
    }
    const result = results[speaker];
    this.allowed = violated.length === 0;
    if (result !== undefined) {
      this.rule = result.rule;
      this.limit = result.limit;
      this.remaining = result.remaining;
    }
    this.retryAfterMs = result === undefined ? 0 : result.retryAfterMs;
    this.resetAfterMs = result === undefined ? 0 : result.resetAfterMs;
    if (result?.reason !== undefined) this.reason = result.reason;
    this.violated = violated;
    this.rulesVersion = made.rulesVersion;
    this.guarantee = made.guarantee;
    this.checks = results;
    if (made.lease !== undefined) this.lease = made.lease;
    if (made.degraded !== undefined) this.degraded = made.degraded;
    this.#origin = made.origin;
  }

  static originOf(decision: Decision): Origin {
    return decision.#origin;
  }
}

function resultOf({ plan }: Check, verdict: Verdict): CheckResult {
  const result: { -readonly [K in keyof CheckResult]: CheckResult[K] } = {
    rule: plan.rule,
    mode: plan.mode,
    allowed: verdict.allowed,
    limit: plan.policy.limit,
    remaining: verdict.remaining,
    retryAfterMs: verdict.retryAfterMs,
    resetAfterMs: verdict.resetAfterMs,
  };
  if (verdict.reason !== undefined) result.reason = verdict.reason;
  if (plan.variant !== undefined) result.variant = plan.variant;
  return result;
}

/** Whether check `a` tells a client more than `b`: a refusal before a pass, the longer wait, the smaller remaining share. */
function speaksBefore(checks: readonly Check[], verdicts: readonly Verdict[], a: number, b: number): boolean {
  const first = verdicts[a]!;
  const second = verdicts[b]!;
  if (first.allowed !== second.allowed) return !first.allowed;
  if (!first.allowed) return first.retryAfterMs > second.retryAfterMs;
  const firstShare = first.remaining / checks[a]!.plan.policy.limit;
  return firstShare < second.remaining / checks[b]!.plan.policy.limit;
}
