/**
 * Charges: checks that count in full whatever their counters hold, because the cost has already been incurred. In: a request's checks, and
 * the store's reply. Out: the checks as charges, and the reply without refusals. Pure.
 */
import type { Verdict } from "../algorithms/model.js";
import { mostToCharge } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import type { StoreReply } from "../store/store.js";

/** Places are held by requests that run, and a charge does not run: it takes no place and only looks. */
export function asCharges(checks: readonly Check[]): Check[] {
  return checks.map((check) => {
    const { policy } = check.plan;
    if (policy.stored === "concurrency") return { ...check, cost: 0 };
    return { ...withoutHold(check), cost: mostToCharge(check.cost, policy), charge: true };
  });
}

/** A cost that has been incurred needs no estimate. */
function withoutHold({ held: _, ...check }: Check): Check {
  return check;
}

/** A charge is never refused; `remaining` and `debt` report the state of its counters. */
export function refusingNothing(reply: StoreReply): StoreReply {
  const passed = (found: Verdict): Verdict => ({ ...found, allowed: true, retryAfterMs: 0, reason: undefined });
  return { ...reply, verdicts: reply.verdicts.map((found) => (found.allowed ? found : passed(found))) };
}
