/**
 * Checks of a caller that cannot wait, under rules that would give it a turn in the future: what does not fit now is refused, and those
 * who wait already go first. Pure.
 */
import type { Verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import type { StoreReply } from "../store/store.js";

/** By the plan that would wait: a remembered refusal is found by its plan. */
const unwaiting = new WeakMap<CheckPlan, CheckPlan>();

export function withoutWaiting(checks: readonly Check[]): readonly Check[] {
  if (checks.every(({ plan }) => plan.maxWaitMs === 0)) return checks;
  return checks.map((check) => (check.plan.maxWaitMs === 0 ? check : { ...check, plan: planWithout(check.plan) }));
}

function planWithout(plan: CheckPlan): CheckPlan {
  let without = unwaiting.get(plan);
  // The numbers of an adaptive rule move: its plan stays, its policy does not.
  if (without === undefined || without.policy.limit !== plan.policy.limit) {
    without = { ...plan, policy: { ...plan.policy, noWait: true } as Policy };
    unwaiting.set(plan, without);
  }
  return without;
}

/** The reply to a caller that would have waited, had not too many others: its refusals by rules with turns say so. */
export function tooManyWaiting(reply: StoreReply, checks: readonly Check[]): StoreReply {
  const judged = reply.repeated?.checks ?? checks;
  const verdicts = reply.verdicts.map((found, i): Verdict => {
    const { maxWaitMs } = judged[i]!.plan;
    const isTooEarly = found.reason === "limit" || found.reason === "min-interval";
    if (found.allowed || !isTooEarly || found.retryAfterMs > maxWaitMs) return found;
    return { ...found, reason: "too-many-waiting" };
  });
  return { ...reply, verdicts };
}
