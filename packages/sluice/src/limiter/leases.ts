/**
 * The leases that a limiter grants. A lease lives in the store, or in the local fallback of the instance that granted it; its id tells
 * which. Out: leases for decisions; `released` and `renewed` for listeners.
 */
import type { Check } from "../check.js";
import type { LeasePlaces, Store, StoreReply } from "../store/store.js";
import type { CheckRequest } from "./check-request.js";
import type { Charger } from "./decision.js";
import { Lease } from "./lease.js";
import { parseLeaseId, spellLeaseId } from "./lease-id.js";
import type { LimiterEmitter } from "./limiter-events.js";

interface LeasesOptions {
  readonly store: Store;
  readonly local: Store;
  readonly events: LimiterEmitter;
}

export class Leases {
  readonly #store: Store;
  readonly #local: Store;
  readonly #events: LimiterEmitter;

  constructor({ store, local, events }: LeasesOptions) {
    this.#store = store;
    this.#local = local;
    this.#events = events;
  }

  /** The lease of a decision, if one of its checks holds a place. */
  leaseOf(request: CheckRequest, reply: StoreReply, charger: Charger): Lease | undefined {
    if (request.sinceMonotonicMs === 0) return undefined;
    const { checks, entryId } = reply.repeated ?? request;
    const places = placesOf(checks, (i) => (reply.verdicts[i]!.charged ? (reply.entryIds?.[i] ?? entryId) : undefined));
    if (places.length === 0) return undefined;
    // How long ago the lease began, if its request id was seen before.
    const ageMs = reply.repeated === undefined ? 0 : reply.repeated.atMs - reply.nowMs;
    return new Lease({
      id: spellLeaseId({ places }, charger === "local"),
      expiresAfterMs: Math.max(0, Math.min(...places.map(({ ttlMs }) => ttlMs)) - ageMs),
      keeper: this,
      sinceMonotonicMs: request.sinceMonotonicMs,
    });
  }

  /** False if the lease was not held any more. */
  async release(leaseId: string): Promise<boolean> {
    const { lease, local } = parseLeaseId(leaseId);
    const released = await (local ? this.#local : this.#store).release(lease);
    if (released) this.#events.emit("released", leaseId);
    return released;
  }

  /** Ms until the lease now ends; 0 if it was lost. */
  async renew(leaseId: string): Promise<number> {
    const { lease, local } = parseLeaseId(leaseId);
    const expiresAfterMs = await (local ? this.#local : this.#store).renew(lease);
    this.#events.emit("renewed", leaseId, expiresAfterMs);
    return expiresAfterMs;
  }
}

/** The places that concurrency checks hold. `entryIdOf`: the name that a check was charged under, if it was. */
function placesOf(checks: readonly Check[], entryIdOf: (i: number) => string | undefined): LeasePlaces[] {
  const places: LeasePlaces[] = [];
  for (const [i, { key, cost, plan }] of checks.entries()) {
    const entryId = entryIdOf(i);
    if (plan.policy.stored !== "concurrency" || entryId === undefined) continue;
    places.push({ key, entryId, places: cost, ttlMs: plan.policy.ttlMs });
  }
  return places;
}
