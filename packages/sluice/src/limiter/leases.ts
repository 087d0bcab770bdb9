/**
 * The leases that a limiter grants. A lease lives in the store, or in the local fallback of the instance that granted it; its id tells
 * which. Out: leases for decisions; `released` and `renewed` for listeners.
 */
import type { Check } from "../check.js";
import type { LoadShedder } from "../shedding/load-shedder.js";
import { PLACE_TTL_MS } from "../shedding/places.js";
import type { LeasePlaces, Store, StoreReply } from "../store/store.js";
import type { CheckRequest } from "./check-request.js";
import type { Charger } from "./decision.js";
import { Lease } from "./lease.js";
import { parseLeaseId, spellLeaseId } from "./lease-id.js";
import type { LimiterEmitter } from "./limiter-events.js";

interface LeasesOptions {
  readonly store: Store;
  readonly local: Store;
  readonly shedder: LoadShedder;
  readonly events: LimiterEmitter;
}

/** The id of a place in flight in this process, alone or before the id of a lease in the store: `p.x`, `p.x~y`. */
const IN_FLIGHT = /^p\.([\w-]{1,32})(?:~(.+))?$/;

export class Leases {
  readonly #store: Store;
  readonly #local: Store;
  readonly #shedder: LoadShedder;
  readonly #events: LimiterEmitter;

  constructor({ store, local, shedder, events }: LeasesOptions) {
    this.#store = store;
    this.#local = local;
    this.#shedder = shedder;
    this.#events = events;
  }

  /** The lease of a decision, if one of its checks holds a place, or it is a request in flight. */
  leaseOf(request: CheckRequest, reply: StoreReply, charger: Charger): Lease | undefined {
    const stored = this.#storedLeaseOf(request, reply, charger);
    const place = request.admission?.place;
    if (place === undefined || isRefused(request, reply)) return stored;
    return new Lease({
      id: stored === undefined ? `p.${place}` : `p.${place}~${stored.id}`,
      expiresAfterMs: Math.min(PLACE_TTL_MS, stored?.expiresAfterMs ?? PLACE_TTL_MS),
      keeper: this,
      sinceMonotonicMs: performance.now(),
    });
  }

  #storedLeaseOf(request: CheckRequest, reply: StoreReply, charger: Charger): Lease | undefined {
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

  /** The request of a lease waits for its turn, or has waited. */
  pause({ id }: Lease): void {
    const place = IN_FLIGHT.exec(id)?.[1];
    if (place !== undefined) this.#shedder.pause(place);
  }

  resume({ id }: Lease): void {
    const place = IN_FLIGHT.exec(id)?.[1];
    if (place !== undefined) this.#shedder.resume(place);
  }

  /** False if the lease was not held any more. */
  async release(leaseId: string, hasLeft = false): Promise<boolean> {
    const [, place, stored] = IN_FLIGHT.exec(leaseId) ?? [undefined, undefined, leaseId];
    // First, and whatever the store answers: the request has ended.
    const wasInFlight = place !== undefined && this.#shedder.release(place, hasLeft ? "left" : "served");
    const released = (stored !== undefined && (await this.#releaseStored(stored))) || wasInFlight;
    if (released) this.#events.emit("released", leaseId);
    return released;
  }

  async #releaseStored(leaseId: string): Promise<boolean> {
    const { lease, local } = parseLeaseId(leaseId);
    return await (local ? this.#local : this.#store).release(lease);
  }

  /** Ms until the lease now ends; 0 if it was lost. */
  async renew(leaseId: string): Promise<number> {
    const [, place, stored] = IN_FLIGHT.exec(leaseId) ?? [undefined, undefined, leaseId];
    const inFlightMs = place === undefined ? undefined : this.#shedder.renew(place);
    const storedMs = stored === undefined ? undefined : await this.#renewStored(stored);
    const expiresAfterMs = Math.min(inFlightMs ?? Number.POSITIVE_INFINITY, storedMs ?? Number.POSITIVE_INFINITY);
    this.#events.emit("renewed", leaseId, expiresAfterMs);
    return expiresAfterMs;
  }

  async #renewStored(leaseId: string): Promise<number> {
    const { lease, local } = parseLeaseId(leaseId);
    return await (local ? this.#local : this.#store).renew(lease);
  }
}

/** Whether a counter refused the request: then it is not in flight. */
function isRefused({ checks, neverRefused }: CheckRequest, { verdicts, repeated }: StoreReply): boolean {
  if (neverRefused) return false;
  return (repeated?.checks ?? checks).some(({ plan }, i) => plan.mode === "enforce" && !verdicts[i]!.allowed);
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
