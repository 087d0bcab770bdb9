/**
 * Joins the checks of several attribute sets into those of one request, and hands each set its results.
 * Two sets may lead to the same counter: then it is one check at the sum of their costs, for a counter that is looked at twice
 * before it is charged would let both pass where only one fits. Where they meet it under different numbers (an override of a rule, a limit
 * that a request of Envoy brings), the tighter ones decide for both. Pure.
 */
import { capacityOf } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import type { CheckResult } from "../decision.js";
import type { Decision } from "./decision.js";

/** A decision about several parts, with the results of each part's checks. */
export interface DecidedParts {
  readonly decision: Decision;
  readonly parts: readonly (readonly CheckResult[])[];
}

/** `places[part][n]`: where the n-th check of a part stands in the joined list. */
export function joinChecks(parts: readonly (readonly Check[])[]): { checks: Check[]; places: number[][] } {
  const checks: Check[] = [];
  const byKey = new Map<string, number>();
  const places = parts.map((part) => {
    const placed: number[] = [];
    for (const check of part) {
      // A charge beside a check stays apart: it counts even where the check is refused.
      const name = check.charge === true ? `+${check.key}` : check.key;
      const at = byKey.get(name);
      if (at === undefined) {
        byKey.set(name, checks.length);
        // A candidate stands behind its live check, so that one's place is known already.
        placed.push(checks.push(check.live < 0 ? check : { ...check, live: placed[check.live]! }) - 1);
      } else {
        const joined = checks[at]!;
        checks[at] = { ...joined, plan: tighter(joined.plan, check.plan), cost: joined.cost + check.cost };
        placed.push(at);
      }
    }
    return placed;
  });
  return { checks, places };
}

/** `places`: as `joinChecks` returns them. */
export function byPart(decision: Decision, places: readonly (readonly number[])[]): DecidedParts {
  // A request that was shed asked no counter: the first part holds the answers of the rules that shed it.
  if (decision.reason === "load") return { decision, parts: places.map((_, i) => (i === 0 ? decision.checks : [])) };
  return { decision, parts: places.map((indices) => indices.map((i) => decision.checks[i]!)) };
}

function tighter(a: CheckPlan, b: CheckPlan): CheckPlan {
  if (a === b) return a;
  if (a.mode !== b.mode) return b.mode === "enforce" ? b : a;
  const [ofA, ofB] = [capacityOf(a.policy), capacityOf(b.policy)];
  return ofB < ofA || (ofB === ofA && b.policy.limit < a.policy.limit) ? b : a;
}
