/**
 * The leases that a limiter grants. A lease lives in the store or in the local fallback of the instance that granted it; the id encodes
 * which. Out: leases for decisions; `released` and `renewed` events.
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

/** The id of a place in flight in this process, alone or followed by the id of a lease in the store: `p.x`, `p.x~y`. */
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

  /** The lease of a decision: if one of its checks holds a place, or the request counts as in flight. */
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
    // If the request id was seen before: how long ago the lease began.
    const ageMs = reply.repeated === undefined ? 0 : reply.repeated.atMs - reply.nowMs;
    return new Lease({
      id: spellLeaseId({ places }, charger === "local"),
      expiresAfterMs: Math.max(0, Math.min(...places.map(({ ttlMs }) => ttlMs)) - ageMs),
      keeper: this,
      sinceMonotonicMs: request.sinceMonotonicMs,
    });
  }

  /** While the request of a lease waits for its turn. */
  pause({ id }: Lease): void {
    const place = IN_FLIGHT.exec(id)?.[1];
    if (place !== undefined) this.#shedder.pause(place);
  }

  resume({ id }: Lease): void {
    const place = IN_FLIGHT.exec(id)?.[1];
    if (place !== undefined) this.#shedder.resume(place);
  }

  /** Frees the place in flight of a lease, and leaves what the store holds to another attempt of the request. */
  freePlace({ id }: Lease): void {
    const place = IN_FLIGHT.exec(id)?.[1];
    if (place !== undefined) this.#shedder.release(place, "refused");
  }

  /** False if the lease was no longer held. */
  async release(leaseId: string, hasLeft = false): Promise<boolean> {
    const [, place, stored] = IN_FLIGHT.exec(leaseId) ?? [undefined, undefined, leaseId];
    // First, and whatever the store answers: the request is over.
    const wasInFlight = place !== undefined && this.#shedder.release(place, hasLeft ? "left" : "served");
    const released = (stored !== undefined && (await this.#releaseStored(stored))) || wasInFlight;
    if (released) this.#events.emit("released", leaseId);
    return released;
  }

  async #releaseStored(leaseId: string): Promise<boolean> {
    const { lease, local } = parseLeaseId(leaseId);
    return await (local ? this.#local : this.#store).release(lease);
  }

  /** Milliseconds until the lease ends now; 0 if it was lost. */
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

/** A request that a counter refused is not in flight. */
function isRefused({ checks, neverRefused }: CheckRequest, { verdicts, repeated }: StoreReply): boolean {
  if (neverRefused) return false;
  return (repeated?.checks ?? checks).some(({ plan }, i) => plan.mode === "enforce" && !verdicts[i]!.allowed);
}

/** The places that concurrency checks hold. `entryIdOf`: the name under which a check was charged, or undefined. */
function placesOf(checks: readonly Check[], entryIdOf: (i: number) => string | undefined): LeasePlaces[] {
  const places: LeasePlaces[] = [];
  for (const [i, { key, cost, plan }] of checks.entries()) {
    const entryId = entryIdOf(i);
    if (plan.policy.stored !== "concurrency" || entryId === undefined) continue;
    places.push({ key, entryId, places: cost, ttlMs: plan.policy.ttlMs });
  }
  return places;
}
