/**
 * The reply to a request that was decided in this process, from units in hand. It keeps the uses that each check's cost belongs to, because
 * a refund must know how they were settled.
 */
import type { Verdict } from "../algorithms/model.js";
import type { SoleReply } from "../sole-request.js";
import type { StoreReply } from "../store/store.js";
import type { HeldUnits, Uses } from "./held-units.js";

export interface ReplyFromHand extends StoreReply {
  readonly uses: readonly Uses[];
}

export function isFromHand(reply: StoreReply): reply is ReplyFromHand {
  return "uses" in reply;
}

/** The reply to a request of one check (`sole-request.ts`): lists are only made on demand. */
export class SoleReplyFromHand implements SoleReply, ReplyFromHand {
  readonly nowMs: number;
  readonly verdict: Verdict;
  readonly #uses: Uses;

  constructor({ nowMs, uses }: HeldUnits, verdict: Verdict) {
    this.nowMs = nowMs;
    this.verdict = verdict;
    this.#uses = uses;
  }

  get verdicts(): readonly Verdict[] {
    return [this.verdict];
  }

  get guarantee(): "prefetched" {
    return "prefetched";
  }

  get uses(): readonly Uses[] {
    return [this.#uses];
  }
}
