/**
 * What a refund has to know of a charge, from the reply that made it. Every refund and every undo is made here, so that none forgets any
 * of it. Pure.
 */
import type { Check } from "../check.js";
import type { Verdict } from "./model.js";
import { owedAfter } from "./token-bucket.js";
import { type ChargeTimes, chargedAt } from "./turns.js";

/** `Charged` of store.ts. */
interface Charged {
  readonly check: Check;
  readonly atMs: number;
  readonly entryId: string;
  readonly owed: number;
}

/** `at`: where the check stands in the reply. */
export function chargedBy(reply: ChargeTimes, at: number, check: Check, entryId: string): Charged {
  return { check, entryId, atMs: chargedAt(reply, at), owed: owedOf(check, reply.verdicts[at]!) };
}

/** 0 where it is not known, and where the counter is no bucket. */
function owedOf({ plan, charge }: Check, found: Verdict): number {
  // The reset of such a charge may be that of units which holders have in hand.
  return charge === true && plan.prefetchMs > 0 ? 0 : owedAfter(plan.policy, found);
}
