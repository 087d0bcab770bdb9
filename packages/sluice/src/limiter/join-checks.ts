/**
 * Joins the checks of several attribute sets into the checks of one request, and splits the results by set again. If two sets lead to the
 * same counter, they become one check at the sum of their costs: two separate looks before the charge would let both pass where only one
 * fits. If they reach it with different numbers (an override, or a limit that an Envoy request carries), the tighter numbers decide for
 * both. If one of them does not know its cost, the counter holds for all of them, and the settlement reports their joint cost. Pure.
 */
import { capacityOf } from "../algorithms/policy.js";
import type { Check, CheckPlan, HeldCost } from "../check.js";
import type { CheckResult } from "../decision.js";
import type { Decision } from "./decision.js";

/** A decision about several parts, with the results of each part's checks. */
export interface DecidedParts {
  readonly decision: Decision;
  readonly parts: readonly (readonly CheckResult[])[];
}

/** `places[part][n]`: the index of a part's n-th check in the joined list. */
export function joinChecks(parts: readonly (readonly Check[])[]): { checks: Check[]; places: number[][] } {
  const checks: Check[] = [];
  const byKey = new Map<string, number>();
  const places = parts.map((part) => {
    const placed: number[] = [];
    for (const check of part) {
      // A charge stays separate from a check: it counts even if the check is refused.
      const name = check.charge === true ? `+${check.key}` : check.key;
      const at = byKey.get(name);
      if (at === undefined) {
        byKey.set(name, checks.length);
        // A candidate follows its live check, so the live check's index is already known.
        placed.push(checks.push(check.live < 0 ? check : { ...check, live: placed[check.live]! }) - 1);
      } else {
        checks[at] = joinedCheck(checks[at]!, check);
        placed.push(at);
      }
    }
    return placed;
  });
  return { checks, places };
}

/** `places`: as returned by `joinChecks`. */
export function byPart(decision: Decision, places: readonly (readonly number[])[]): DecidedParts {
  // A request that was shed asked no counter: the first part gets the results of the rules that shed it.
  if (decision.reason === "load") return { decision, parts: places.map((_, i) => (i === 0 ? decision.checks : [])) };
  return { decision, parts: places.map((indices) => indices.map((i) => decision.checks[i]!)) };
}

function joinedCheck(a: Check, b: Check): Check {
  const joined: Check = { ...a, plan: tighter(a.plan, b.plan), cost: a.cost + b.cost };
  if (a.held === undefined && b.held === undefined) return joined;
  // The tighter plan may belong to a rule of the same name, but without an estimate, in a part's own book.
  const estimate = joined.plan.estimate ?? a.plan.estimate ?? b.plan.estimate!;
  const plan = joined.plan.estimate === undefined ? { ...joined.plan, estimate } : joined.plan;
  return { ...joined, plan, held: joinedHold(a, b) };
}

function joinedHold(a: Check, b: Check): HeldCost {
  const told = toldOf(a) + toldOf(b);
  const [ofA, ofB] = [boundOf(a), boundOf(b)];
  const said = ofA === undefined || ofB === undefined ? undefined : ofA + ofB;
  return told === 0 ? { said } : { said, told };
}

function toldOf({ held, cost }: Check): number {
  return held === undefined ? cost : (held.told ?? 0);
}

function boundOf({ held, cost }: Check): number | undefined {
  return held === undefined ? cost : held.said;
}

function tighter(a: CheckPlan, b: CheckPlan): CheckPlan {
  if (a === b) return a;
  if (a.mode !== b.mode) return b.mode === "enforce" ? b : a;
  const [ofA, ofB] = [capacityOf(a.policy), capacityOf(b.policy)];
  return ofB < ofA || (ofB === ofA && b.policy.limit < a.policy.limit) ? b : a;
}
