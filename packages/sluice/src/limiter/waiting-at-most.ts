/**
 * Checks for a caller that cannot wait, or not as long as the rules allow: a request whose turn is further away is refused, and those
 * already waiting go first. Pure.
 */
import type { Verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import { SluiceError } from "../errors.js";
import type { StoreReply } from "../store/store.js";
import type { CheckOptions } from "./check-request.js";

/** Callers use few different waits; even if clients can choose one, they cannot fill the memory with plans. */
const MOST_WAITS = 16;

/** By the plan with the longer wait, then by the caller's wait. Cached, because a remembered refusal is found by its plan. */
const hastier = new WeakMap<CheckPlan, Map<number, CheckPlan>>();

/** Infinity: as long as the rules allow. */
export function longestWaitOf({ wait, maxWaitMs = Number.POSITIVE_INFINITY }: CheckOptions): number {
  if (typeof maxWaitMs !== "number" || !(maxWaitMs >= 0)) {
    throw new SluiceError(
      "invalid-request",
      `maxWaitMs: expected milliseconds of at least 0, got ${String(maxWaitMs)}`,
    );
  }
  return wait === false ? 0 : maxWaitMs;
}

export function waitingAtMost(checks: readonly Check[], mostMs: number): readonly Check[] {
  // Fast path, taken by nearly every check.
  if (mostMs === Number.POSITIVE_INFINITY) return checks;
  if (checks.every(({ plan }) => plan.maxWaitMs <= mostMs)) return checks;
  const callerWaitsMs = Math.floor(mostMs);
  return checks.map((check) =>
    check.plan.maxWaitMs <= mostMs ? check : { ...check, plan: planFor(check.plan, callerWaitsMs) },
  );
}

function planFor(plan: CheckPlan, callerWaitsMs: number): CheckPlan {
  const byWait = hastier.get(plan) ?? new Map<number, CheckPlan>();
  const known = byWait.get(callerWaitsMs);
  if (known !== undefined) return known;
  if (byWait.size >= MOST_WAITS) byWait.clear();
  const made: CheckPlan = { ...plan, policy: { ...plan.policy, callerWaitsMs } as Policy };
  hastier.set(plan, byWait.set(callerWaitsMs, made));
  return made;
}

/** The reply to a caller that would have waited if there were not too many others: rules with turns refuse it for that reason. */
export function tooManyWaiting(reply: StoreReply, checks: readonly Check[]): StoreReply {
  const { repeated } = reply;
  const judged = repeated?.checks ?? checks;
  const agedMs = repeated === undefined ? 0 : Math.max(0, repeated.atMs - reply.nowMs);
  const waits = ({ plan }: Check, found: Verdict): boolean => plan.mode === "enforce" && found.delayMs > agedMs;
  // The first attempt of the id waits; this one may not, and what was charged is that attempt's.
  if (judged.some((check, i) => waits(check, reply.verdicts[i]!))) {
    const verdicts = reply.verdicts.map((found, i): Verdict => {
      const uncharged = { ...found, charged: false };
      if (!waits(judged[i]!, found)) return uncharged;
      const retryAfterMs = found.delayMs - agedMs;
      return { ...uncharged, allowed: false, delayMs: 0, retryAfterMs, reason: "too-many-waiting" };
    });
    return { ...reply, verdicts };
  }
  const verdicts = reply.verdicts.map((found, i): Verdict => {
    const { maxWaitMs } = judged[i]!.plan;
    const isTooEarly = found.reason === "limit" || found.reason === "min-interval";
    if (found.allowed || !isTooEarly || found.retryAfterMs > maxWaitMs) return found;
    return { ...found, reason: "too-many-waiting" };
  });
  return { ...reply, verdicts };
}
