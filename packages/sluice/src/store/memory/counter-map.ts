/**
 * The memory store's counters, bounded in bytes. Eviction takes idle counters first: used-up ones stay as long as any other is left,
 * because to forget one admits a client that was refused. Only if every counter is used up does eviction take one of those: the
 * nearest to its end among a few, which would have been free the soonest. To refuse new keys instead would let a client that makes up
 * keys lock all others out.
 */
import type { State } from "../../algorithms/model.js";
import { ExpiringMap } from "../expiring-map.js";
import { counterBytes } from "./memory-bytes.js";

/** For one write: a ring that grows by megabytes would otherwise hold up everybody. The next writes make the rest of the room. */
const MOST_EVICTIONS = 256;

export class CounterMap {
  readonly #idle = new ExpiringMap<State>();
  readonly #usedUp = new ExpiringMap<State>();
  readonly #maxBytes: number;
  /** Counters that gave way before their end. */
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

  /** While it stands, a counter that was found under its key is still the one. */
  get departures(): number {
    return this.#idle.departures + this.#usedUp.departures;
  }

  /** The counter, even if it has ended and was not swept yet. */
  get(key: string): State | undefined {
    return this.#idle.get(key) ?? (this.#usedUp.count === 0 ? undefined : this.#usedUp.get(key));
  }

  /** Adds a counter, or replaces one that has ended. */
  set(key: string, state: State, nowMs: number): void {
    if (this.#usedUp.count > 0) this.#usedUp.delete(key);
    // It may be the very counter that has ended, charged anew in the millisecond of its end.
    state.isUsedUp = false;
    state.bytes = counterBytes(key, state);
    this.#makeRoom(state.bytes, nowMs);
    this.#idle.set(key, state, nowMs);
  }

  /** `isUsedUp`: the key was refused, or has just taken the last that it may. The state itself says where it is: nothing is searched. */
  mark(key: string, state: State, isUsedUp: boolean, nowMs: number): void {
    if (state.isUsedUp !== isUsedUp) this.#move(key, state, isUsedUp, nowMs);
  }

  #move(key: string, state: State, isUsedUp: boolean, nowMs: number): void {
    // A counter that gave way to another of the same request is nowhere.
    if (!this.#homeOf(state).delete(key)) return;
    state.isUsedUp = isUsedUp;
    this.#homeOf(state).set(key, state, nowMs);
  }

  #homeOf(state: State): ExpiringMap<State> {
    return state.isUsedUp ? this.#usedUp : this.#idle;
  }

  /** A counter may have grown or shrunk. */
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
    // Taken out meanwhile: others give way to it, not itself.
    home.delete(key);
    state.bytes = bytes;
    this.#makeRoom(bytes, nowMs);
    home.set(key, state, nowMs);
  }

  delete(key: string): void {
    if (!this.#idle.delete(key)) this.#usedUp.delete(key);
  }

  /** Those that are used up, ended ones included. */
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
