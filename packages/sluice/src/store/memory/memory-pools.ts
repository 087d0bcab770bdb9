/**
 * The pools of the memory store (`algorithms/pool.ts`): units that a region has fetched from the global store, stored among its counters.
 */
import {
  askForPool,
  fillPool,
  type PoolAsk,
  type PoolAsked,
  type PoolFill,
  type PoolFilled,
  type PoolState,
  pool,
} from "../../algorithms/pool.js";
import type { MemoryCounters } from "./memory-counters.js";
import type { MemoryGrants } from "./memory-grants.js";

export class MemoryPools {
  readonly #counters: MemoryCounters;

  constructor(counters: MemoryCounters) {
    this.#counters = counters;
  }

  /** `grants`: those of the store, if any. */
  ask(key: string, ask: PoolAsk, grants: MemoryGrants | undefined, nowMs: number): PoolAsked {
    const known = this.#counters.state(key, nowMs) as PoolState | undefined;
    const state = known ?? pool.fresh();
    const { asked, endsHeld } = askForPool(state, ask, { heldUnits: grants?.heldOf(key) ?? 0, nowMs });
    if (endsHeld) grants?.forget(key);
    if (known === undefined && asked.isMine) this.#counters.add(key, state, nowMs);
    return asked;
  }

  fill(key: string, fill: PoolFill, nowMs: number): PoolFilled {
    const state = this.#counters.state(key, nowMs) as PoolState | undefined;
    return { nowMs, isCounted: state !== undefined && fillPool(state, fill, nowMs) };
  }
}
