/**
 * Requests of one event-loop turn, for a key without units in hand, as one check for the store. In: requests of one check at cost 1. Out:
 * each one's reply. If not all of them fit, each asks by itself.
 */
import type { Verdict } from "../algorithms/model.js";
import { owedAfter } from "../algorithms/token-bucket.js";
import type { CheckPlan } from "../check.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { type HeldUnits, LONGEST_REFUSAL_MS, type Uses } from "./held-units.js";

/** The most requests to join into one check. */
const MOST_TOGETHER = 1_000;

export class TurnRequests {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Whether requests like this one can be joined into one check. */
  static canJoin({ checks }: StoreRequest): boolean {
    const { plan, cost, charge } = checks[0]!;
    return checks.length === 1 && cost === 1 && charge !== true && plan.prefetchMs > 0 && plan.regionTermMs === 0;
  }

  /** `held`: the units of its key. */
  decide(held: HeldUnits, request: StoreRequest): Promise<StoreReply> {
    const { plan } = request.checks[0]!;
    let together = held.together;
    if (together === undefined || together.plan !== plan || together.requests.length >= mostTogether(plan)) {
      const requests: StoreRequest[] = [];
      const decided = Promise.resolve().then(() => {
        if (held.together?.requests === requests) held.together = undefined;
        return this.#decideTogether(held, requests);
      });
      together = { plan, requests, decided };
      held.together = together;
    }
    together.requests.push(request);
    return together.decided.then((replyOf) => replyOf?.() ?? this.#decideAlone(held, request));
  }

  /** Undefined if there is no room for all of them. */
  async #decideTogether(held: HeldUnits, requests: readonly StoreRequest[]): Promise<(() => StoreReply) | undefined> {
    if (requests.length === 1) return undefined;
    const [first] = requests as [StoreRequest];
    const seq = held.nextSeq();
    const request = {
      ...first,
      checks: [{ ...first.checks[0]!, cost: requests.length }],
      entryId: `${held.holder}.${seq}`,
      together: requests,
    };
    const reply = await this.#store.decide(request);
    const [found] = reply.verdicts as [Verdict];
    if (!found.allowed) return undefined;
    const owed = owedAfter(first.checks[0]!.plan.policy, found);
    const uses: Uses = { held, seq, atMs: reply.nowMs, owed, movedTo: undefined, refunded: 0 };
    return () => ({ ...reply, verdicts: [{ ...found }], uses: [uses] });
  }

  async #decideAlone(held: HeldUnits, request: StoreRequest): Promise<StoreReply> {
    const sinceMonotonicMs = performance.now();
    const reply = await this.#store.decide(request);
    const { allowed, retryAfterMs } = reply.verdicts[0]!;
    if (!allowed) held.refusedUntilMonotonicMs = sinceMonotonicMs + Math.min(retryAfterMs, LONGEST_REFUSAL_MS);
    return reply;
  }
}

function mostTogether({ policy }: CheckPlan): number {
  return Math.min(MOST_TOGETHER, "capacity" in policy ? policy.capacity : policy.limit);
}
