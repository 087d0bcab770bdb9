/**
 * Refunds of decisions from units in hand: their uses may be waiting for a settlement, or be settled, or lost on the way. Never gives back
 * what someone else used: if it is uncertain what the store charged, nothing is given back.
 */
import type { Check } from "../check.js";
import type { Charged, Store } from "../store/store.js";
import type { Uses } from "./held-units.js";
import type { ReplyFromHand } from "./reply-from-hand.js";

/**
 * Gives back what a decision from units in hand used: into the hand if it is not settled yet, otherwise to the store, from the entries that
 * were charged for it.
 */
export async function refundUses(
  store: Pick<Store, "refund">,
  { uses }: ReplyFromHand,
  checks: readonly Check[],
): Promise<boolean> {
  const charges: Charged[] = [];
  let isInHand = false;
  for (let i = 0; i < checks.length; i++) {
    const settled = await settlementOf(uses[i]!);
    // A fetch without an answer: the store may have charged it then, or with the next one. Neither the hand nor an entry is certain.
    if (settled !== uses[i]) continue;
    if (settled.seq === 0) {
      const nowMonotonicMs = performance.now();
      // Expired units are charged by the store itself: there is no hand to give them back into.
      if (nowMonotonicMs >= settled.held.endsAtMonotonicMs) continue;
      settled.held.unuse(checks[i]!.cost);
      isInHand = true;
    } else if (settled.atMs > 0) charges.push(...chargesOf(settled, checks[i]!));
  }
  return charges.length === 0 ? isInHand : await store.refund({ charges, id: undefined });
}

function chargesOf(uses: Uses, check: Check): Charged[] {
  const name = `${uses.held.holder}.${uses.seq}`;
  const { atMs } = uses;
  const { policy } = check.plan;
  if (policy.stored !== "rolling-window") {
    // What is given back of one charge is taken from its end, so another refund of it concerns units in front of those.
    const owed = "capacity" in policy ? Math.max(0, uses.owed - uses.refunded * policy.scaleMs) : 0;
    uses.refunded += check.cost;
    return [{ check, atMs, entryId: name, owed }];
  }
  // Entries of a sorted set have names; those of one settlement are identical, so any remaining one may go.
  return Array.from({ length: check.cost }, () => {
    const nth = ++uses.refunded;
    return { check: { ...check, cost: 1 }, atMs, entryId: nth === 1 ? name : `${name}:${nth}`, owed: 0 };
  });
}

/** The uses that some were settled with, once that is known. Uses with neither number nor time were given up. */
async function settlementOf(uses: Uses): Promise<Uses> {
  let last = uses;
  for (;;) {
    while (last.movedTo !== undefined) last = last.movedTo;
    if (last.seq === 0 || last.atMs > 0 || last.held.underWay === undefined) return last;
    await last.held.underWay;
  }
}
