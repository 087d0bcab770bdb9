/** The leases of the memory store: places of concurrency counters, released or renewed. A lease is held as a whole, or lost. */
import { type ConcurrencyState, concurrency } from "../../algorithms/concurrency.js";
import type { LeaseRequest } from "../store.js";
import type { CounterMap } from "./counter-map.js";

export class MemoryLeases {
  readonly #states: CounterMap;

  constructor(states: CounterMap) {
    this.#states = states;
  }

  /** False if no place was held any more. */
  release({ places }: LeaseRequest, nowMs: number): boolean {
    let freed = false;
    for (const held of places) {
      const state = this.#states.get(held.key) as ConcurrencyState | undefined;
      if (state !== undefined && concurrency.release(state, held, nowMs)) freed = true;
    }
    return freed;
  }

  /** Milliseconds for which the lease is held from now on; 0 if it was lost. */
  renew(lease: LeaseRequest, nowMs: number): number {
    let shortestMs = Number.POSITIVE_INFINITY;
    for (const held of lease.places) {
      const state = this.#states.get(held.key) as ConcurrencyState | undefined;
      if (state === undefined || !concurrency.renew(state, held, nowMs)) {
        // A lease that lost one of its places is lost as a whole: the others are released too.
        this.release(lease, nowMs);
        return 0;
      }
      shortestMs = Math.min(shortestMs, held.ttlMs);
    }
    return shortestMs;
  }
}
