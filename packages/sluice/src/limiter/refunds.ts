/**
 * Gives back what decisions charged, each once. The store remembers decisions with an id; this file remembers those without. In: a
 * decision, or a decision's id. Out: whether anything was given back.
 */
import { chargedBy } from "../algorithms/charged.js";
import type { Check } from "../check.js";
import { SluiceError } from "../errors.js";
import { refundUses } from "../prefetch/refund-uses.js";
import { isFromHand } from "../prefetch/reply-from-hand.js";
import type { Reservations } from "../reservations/reservations.js";
import { describeValue } from "../rules/describe-value.js";
import type { MemoryStore } from "../store/memory/memory-store.js";
import type { Charged, Store } from "../store/store.js";
import { checkedId } from "./check-input.js";
import type { CheckPart } from "./check-request.js";
import { Decision, type Origin } from "./decision.js";

interface RefundsOptions {
  readonly store: Store;
  /** Where the failure policy `local` counts. */
  readonly local: MemoryStore;
  readonly reservations: Reservations;
}

/** Stores remember an id for a minute; it may be forgotten while it is read. */
const REMEMBERED_MS = 59_000;

/** Shared by all limiters of this process: two on one store would both give back the same charge. */
const refunded = new WeakSet<Decision>();
/** Whose fallback charged a decision. Another limiter's fallback does not know the charge, and would give back what others used. */
const localCharger = new WeakMap<Decision, Refunds>();

export class Refunds {
  readonly #store: Store;
  readonly #local: MemoryStore;
  readonly #reservations: Reservations;

  constructor({ store, local, reservations }: RefundsOptions) {
    this.#store = store;
    this.#local = local;
    this.#reservations = reservations;
  }

  /** Remembers that this limiter's fallback charged the decision. */
  chargedLocally(decision: Decision): void {
    localCharger.set(decision, this);
  }

  async refund(decision: Decision): Promise<boolean> {
    // A copy, or a decision that was JSON for a while, does not say what it charged.
    if (!(decision instanceof Decision)) {
      throw new SluiceError(
        "invalid-request",
        `decision: expected a decision as the limiter made it, or the id of its request, got ${describeValue(decision)}`,
      );
    }
    if (refunded.has(decision)) return false;
    const origin = Decision.originOf(decision);
    refunded.add(decision);
    try {
      return await (localCharger.get(decision) ?? this).#refundCharges(origin);
    } catch (error) {
      // The caller may retry if certainly nothing was given back, or if the store can tell by the id whether it was.
      const settled = origin.id === undefined && error instanceof SluiceError && error.mayHaveRun;
      if (!settled) refunded.delete(decision);
      throw error;
    }
  }

  /**
   * Whether the charge of a decision stands. Only the charge of a retry may have been given back by others: by the attempt that made it.
   * True if that is unknown: the store does not answer, or no longer remembers the id.
   */
  async isStanding(decision: Decision): Promise<boolean> {
    const { id, entryId, nowMs, reply } = Decision.originOf(decision);
    const repeatedAtMs = reply?.repeated?.atMs;
    if (id === undefined || repeatedAtMs === undefined) return true;
    if (repeatedAtMs - nowMs + decision.delayMs > REMEMBERED_MS) return true;
    try {
      return (await this.#store.recall(id))?.repeated?.entryId === entryId;
    } catch {
      return true;
    }
  }

  /** Works from any instance, while the id is remembered. */
  async refundById(id: string): Promise<boolean> {
    const reply = await this.#store.recall(checkedId(id));
    if (reply?.repeated === undefined) return false;
    const { verdicts, nowMs, timesMs, entryIds } = reply;
    return await this.#refundCharges({ ...reply.repeated, verdicts, nowMs, timesMs, entryIds, id, charger: "store" });
  }

  /** Gives units back without naming a charge. */
  async giveBack(given: readonly Check[], asked: readonly CheckPart[]): Promise<boolean> {
    // Where turns are booked, the newest units belong to requests that are waiting.
    const checks = given.filter(({ plan }) => plan.maxWaitMs === 0);
    try {
      return await this.#store.giveBack(checks, asked);
    } catch (error) {
      // While the store is away, rules with the failure policy `local` count here.
      if (this.#local.giveBack(checks)) return true;
      throw error;
    }
  }

  async #refundCharges(origin: Origin): Promise<boolean> {
    const { checks, entryId, id, charger, reply } = origin;
    if (reply !== undefined && isFromHand(reply)) return await refundUses(this.#store, reply, checks);
    // Held units go back through their reservation. It may already be settled, and then none of them do.
    const charges = chargesOf(
      checks.map((check) => (check.held === undefined ? check : { ...check, cost: 0 })),
      origin,
      entryId,
    );
    if (charger === "nobody" || charges.length === 0) return false;
    const store = charger === "store" ? this.#store : this.#local;
    const given = await store.refund({ charges, id: charger === "store" ? id : undefined });
    if (given) await this.#reservations.cancelHeldBy(origin, charger === "local");
    return given;
  }
}

/** The checks that a reply charged, in the form that a refund takes. */
export function chargesOf(
  checks: readonly Check[],
  reply: Pick<Origin, "verdicts" | "nowMs"> & Partial<Pick<Origin, "timesMs" | "entryIds">>,
  entryId: string,
): Charged[] {
  return checks.flatMap((check, i) =>
    reply.verdicts[i]!.charged ? [chargedBy(reply, i, check, reply.entryIds?.[i] ?? entryId)] : [],
  );
}
