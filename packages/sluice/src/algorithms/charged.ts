/**
 * What a refund needs to know about a charge, taken from the reply that made it. Every refund and every undo is built here, so that none
 * omits a part of it. Pure.
 */
import type { Check } from "../check.js";
import type { Verdict } from "./model.js";
import { owedAfter } from "./token-bucket.js";
import { type ChargeTimes, chargedAt } from "./turns.js";

/** `Charged` of store.ts. */
interface Charged {
  readonly check: Check;
  readonly atMs: number;
  readonly bookedMs: number;
  readonly entryId: string;
  readonly owed: number;
}

/** `at`: the check's index in the reply. */
export function chargedBy(reply: ChargeTimes, at: number, check: Check, entryId: string): Charged {
  const bookedMs = reply.timesMs?.[at] ?? reply.nowMs;
  return { check, entryId, atMs: chargedAt(reply, at), bookedMs, owed: owedOf(check, reply.verdicts[at]!) };
}

/** 0 if it is unknown, or the counter is not a bucket. */
function owedOf({ plan, charge }: Check, found: Verdict): number {
  // The reset of such a charge may include units that holders have in hand.
  return charge === true && plan.prefetchMs > 0 ? 0 : owedAfter(plan.policy, found);
}
