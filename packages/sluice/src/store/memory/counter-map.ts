/**
 * The memory store's counters, bounded in bytes. Eviction takes idle counters first: used-up ones stay as long as any other is left,
 * because forgetting one admits a client that was refused. Only if every counter is used up does eviction take one of those: the one
 * nearest to its end in a small sample, which would have been free soonest. Refusing new keys instead would let a client that makes up keys
 * lock out all others.
 */
import type { State } from "../../algorithms/model.js";
import { ExpiringMap } from "../expiring-map.js";
import { counterBytes } from "./memory-bytes.js";

/** Per write: otherwise a ring that grows by megabytes would block the event loop. The next writes free the rest. */
const MOST_EVICTIONS = 256;

export class CounterMap {
  readonly #idle = new ExpiringMap<State>();
  readonly #usedUp = new ExpiringMap<State>();
  readonly #maxBytes: number;
  /** Counters evicted before their end. */
  evictedIdle = 0;
  evictedUsedUp = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get count(): number {
    return this.#idle.count + this.#usedUp.count;
  }

  get bytes(): number {
    return this.#idle.bytes + this.#usedUp.bytes;
  }

  /** As long as this is unchanged, a counter found earlier is still the one stored under its key. */
  get departures(): number {
    return this.#idle.departures + this.#usedUp.departures;
  }

  /** The counter, even if it has expired but was not swept yet. */
  get(key: string): State | undefined {
    return this.#idle.get(key) ?? (this.#usedUp.count === 0 ? undefined : this.#usedUp.get(key));
  }

  /** Adds a counter, or replaces one that has expired. */
  set(key: string, state: State, nowMs: number): void {
    if (this.#usedUp.count > 0) this.#usedUp.delete(key);
    // It may be the very counter that has expired, charged again in the millisecond of its end.
    state.isUsedUp = false;
    state.bytes = counterBytes(key, state);
    this.#makeRoom(state.bytes, nowMs);
    this.#idle.set(key, state, nowMs);
  }

  /** `isUsedUp`: the key was refused, or has just taken its last unit. The state records which map it is in, so no lookup is needed. */
  mark(key: string, state: State, isUsedUp: boolean, nowMs: number): void {
    if (state.isUsedUp !== isUsedUp) this.#move(key, state, isUsedUp, nowMs);
  }

  #move(key: string, state: State, isUsedUp: boolean, nowMs: number): void {
    // A counter that was evicted in favour of another one of the same request is in neither map.
    if (!this.#homeOf(state).delete(key)) return;
    state.isUsedUp = isUsedUp;
    this.#homeOf(state).set(key, state, nowMs);
  }

  #homeOf(state: State): ExpiringMap<State> {
    return state.isUsedUp ? this.#usedUp : this.#idle;
  }

  /** Call when a counter may have grown or shrunk. */
  measure(key: string, state: State, nowMs: number): void {
    const bytes = counterBytes(key, state);
    const by = bytes - state.bytes;
    const home = this.#homeOf(state);
    if (by === 0 || home.get(key) !== state) return;
    if (by < 0 || this.bytes + by <= this.#maxBytes) {
      home.resize(by);
      state.bytes = bytes;
      return;
    }
    // Take it out first, so that others are evicted for it, not itself.
    home.delete(key);
    state.bytes = bytes;
    this.#makeRoom(bytes, nowMs);
    home.set(key, state, nowMs);
  }

  delete(key: string): void {
    if (!this.#idle.delete(key)) this.#usedUp.delete(key);
  }

  /** The used-up counters, including expired ones. */
  usedUp(): Iterable<[string, State]> {
    return this.#usedUp.entries();
  }

  sweep(looks: number, nowMs: number): void {
    this.#idle.sweep(looks, nowMs);
    this.#usedUp.sweep(looks, nowMs);
  }

  #makeRoom(neededBytes: number, nowMs: number): void {
    for (let i = 0; i < MOST_EVICTIONS && this.bytes + neededBytes > this.#maxBytes && this.count > 0; i++) {
      if (this.#idle.count > 0) {
        if (this.#idle.evict(nowMs)) this.evictedIdle++;
      } else if (this.#usedUp.evict(nowMs)) this.evictedUsedUp++;
    }
  }
}
