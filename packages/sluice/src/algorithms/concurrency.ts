/**
 * Concurrency by leases (paper, Algorithm 5). Twin: concurrency.lua; release and renewal: lease.lua. Each place is held until it is
 * released or its lease expires, so a crashed holder blocks nobody for long.
 */
import { NEVER_MS } from "../decision.js";
import { type Charge, type GivenBack, type Model, type Refund, type State, type Verdict, verdict } from "./model.js";
import type { ConcurrencyPolicy } from "./policy.js";

interface Lease {
  endsAtMs: number;
  places: number;
  readonly ttlMs: number;
}

/** How a renewal or release identifies a lease. The term is part of the name: a term that was never granted matches no lease. */
interface HeldLease {
  readonly entryId: string;
  readonly places: number;
  readonly ttlMs: number;
}

/** The name that concurrency.lua and lease.lua give to the first place of a lease. */
function nameOf(entryId: string, ttlMs: number): string {
  return `${entryId}.${ttlMs}`;
}

export interface ConcurrencyState extends State {
  leases: Map<string, Lease>;
}

/**
 * A lease that ends later than its term from now was taken by a clock that was ahead: it counts as taken now. The one that ends last shows
 * whether there are any: looking at every lease in every check would cost more than it is worth after a rule's term was shortened.
 */
function settle(state: ConcurrencyState, ttlMs: number, nowMs: number): void {
  if (state.endsAtMs - nowMs <= ttlMs) return;
  const last = lastOf(state);
  if (last !== undefined && isAhead(last, nowMs)) moveToNow(state, nowMs);
}

function isAhead({ endsAtMs, ttlMs }: Lease, nowMs: number): boolean {
  return endsAtMs - nowMs > ttlMs;
}

function moveToNow(state: ConcurrencyState, nowMs: number): void {
  for (const lease of state.leases.values()) if (isAhead(lease, nowMs)) lease.endsAtMs = nowMs + lease.ttlMs;
  state.endsAtMs = latestEnd(state);
}

/** If several end together, the last by name: the order of a sorted set. */
function lastOf(state: ConcurrencyState): Lease | undefined {
  let last: [string, Lease] | undefined;
  for (const entry of state.leases) {
    const later = last === undefined ? 1 : entry[1].endsAtMs - last[1].endsAtMs;
    if (later > 0 || (later === 0 && entry[0] > last![0])) last = entry;
  }
  return last?.[1];
}

function dropEnded(state: ConcurrencyState, nowMs: number): void {
  for (const [name, lease] of state.leases) if (lease.endsAtMs <= nowMs) state.leases.delete(name);
}

function countLive(state: ConcurrencyState, nowMs: number): number {
  let count = 0;
  for (const lease of state.leases.values()) if (lease.endsAtMs > nowMs) count += lease.places;
  return count;
}

/** When enough leases have expired for `needed` more places, if nobody releases. */
function freeAtMs(state: ConcurrencyState, needed: number, nowMs: number): number {
  const live = [...state.leases.values()]
    .filter((lease) => lease.endsAtMs > nowMs)
    .sort((a, b) => a.endsAtMs - b.endsAtMs);
  let freed = 0;
  for (const lease of live) {
    freed += lease.places;
    if (freed >= needed) return lease.endsAtMs;
  }
  return nowMs;
}

function placesIn(state: ConcurrencyState): number {
  let places = 0;
  for (const lease of state.leases.values()) places += lease.places;
  return places;
}

function latestEnd(state: ConcurrencyState): number {
  let latestMs = 0;
  for (const lease of state.leases.values()) latestMs = Math.max(latestMs, lease.endsAtMs);
  return latestMs;
}

export const concurrency: Model<ConcurrencyPolicy, ConcurrencyState> & {
  release(state: ConcurrencyState, held: Omit<HeldLease, "places">, nowMs: number): boolean;
  renew(state: ConcurrencyState, held: HeldLease, nowMs: number): boolean;
} = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, leases: new Map() }),

  look(state: ConcurrencyState, policy: ConcurrencyPolicy, cost: number, nowMs: number): Verdict {
    const { limit, ttlMs } = policy;
    settle(state, ttlMs, nowMs);
    const count = countLive(state, nowMs);
    const remaining = limit - count;
    const resetAfterMs = count > 0 ? state.endsAtMs - nowMs : 0;
    if (cost === 0) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cost > limit) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    if (count + cost <= limit) return verdict(true, remaining, 0, resetAfterMs, undefined);
    return verdict(false, remaining, freeAtMs(state, count + cost - limit, nowMs) - nowMs, resetAfterMs, "concurrency");
  },

  charge(state: ConcurrencyState, policy: ConcurrencyPolicy, { cost, nowMs, requestId }: Charge, found: Verdict): void {
    const { ttlMs } = policy;
    dropEnded(state, nowMs);
    state.leases.set(nameOf(requestId, ttlMs), { endsAtMs: nowMs + ttlMs, places: cost, ttlMs });
    state.endsAtMs = Math.max(latestEnd(state), nowMs + ttlMs);
    found.remaining = policy.limit - countLive(state, nowMs);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  refund(state: ConcurrencyState, { ttlMs }: ConcurrencyPolicy, { requestId, nowMs }: Refund): void {
    concurrency.release(state, { entryId: requestId, ttlMs }, nowMs);
  },

  /**
   * The caller does not name the places to free, so the oldest go: those that remain end last, so that no place is free before its holder
   * is done or its ttl is over. (If the newest went, a busy key would be left with old leases, which expire while their places are in use.)
   */
  giveBack(state: ConcurrencyState, _policy: ConcurrencyPolicy, { cost, nowMs }: GivenBack): boolean {
    dropEnded(state, nowMs);
    const oldest = [...state.leases].sort(([a, one], [b, other]) => one.endsAtMs - other.endsAtMs || (a < b ? -1 : 1));
    let left = cost;
    for (const [id, lease] of oldest) {
      const freed = Math.min(left, lease.places);
      lease.places -= freed;
      left -= freed;
      if (lease.places === 0) state.leases.delete(id);
      if (left === 0) break;
    }
    state.endsAtMs = latestEnd(state);
    return left < cost;
  },

  /** True if a place was still held. */
  release(state: ConcurrencyState, { entryId, ttlMs }: Omit<HeldLease, "places">, nowMs: number): boolean {
    const name = nameOf(entryId, ttlMs);
    const lease = state.leases.get(name);
    state.leases.delete(name);
    state.endsAtMs = latestEnd(state);
    return lease !== undefined && lease.endsAtMs > nowMs;
  },

  /** Renews for another full term. False if the lease, or any of its places, was lost meanwhile. */
  renew(state: ConcurrencyState, { entryId, ttlMs, places }: HeldLease, nowMs: number): boolean {
    const lease = state.leases.get(nameOf(entryId, ttlMs));
    if (lease === undefined || lease.endsAtMs <= nowMs || lease.places < places) return false;
    lease.endsAtMs = nowMs + ttlMs;
    state.endsAtMs = latestEnd(state);
    return true;
  },

  describe: (state: ConcurrencyState) => ({ count: placesIn(state), latestEndMs: latestEnd(state) }),
};
