/** The blocks of the memory store (`algorithms/block.ts`): they are stored among its counters, as used-up ones, which are evicted last. */
import {
  type BlockState,
  beginBlock,
  beginsBlock,
  blockLeftMs,
  freshBlock,
  nextBlockMs,
  putOff,
  refuseBlocked,
} from "../../algorithms/block.js";
import type { Verdict } from "../../algorithms/model.js";
import type { Check } from "../../check.js";
import { isBlockKey, readCounterKey } from "../../keys.js";
import type { BlockedKey } from "../store.js";
import type { CounterMap } from "./counter-map.js";

/** Per listing, because checks wait meanwhile. */
const MOST_LOOKS = 100_000;
const MOST_TOLD = 1_000;

export class MemoryBlocks {
  readonly #states: CounterMap;

  constructor(states: CounterMap) {
    this.#states = states;
  }

  /** Refuses a key that is blocked; begins a block if its traffic is refused and the request is to be charged. */
  apply({ block, cost }: Check, found: Verdict, charge: boolean, nowMs: number): void {
    const { key, lengthsMs } = block!;
    const state = this.#find(key, nowMs) ?? freshBlock();
    const leftMs = blockLeftMs(state, nowMs);
    if (leftMs > 0) {
      if (cost > 0) refuseBlocked(found, leftMs);
      return;
    }
    if (found.allowed || !beginsBlock(found.reason)) return;
    putOff(found, nextBlockMs(state, lengthsMs, nowMs));
    if (!charge) return;
    beginBlock(state, lengthsMs, nowMs);
    this.#keep(key, state, nowMs);
  }

  put(key: string, lengthMs: number, nowMs: number): void {
    const state = freshBlock();
    beginBlock(state, [lengthMs], nowMs);
    this.#keep(key, state, nowMs);
  }

  /** The blocks of one rule, if given: the filter applies before the list is truncated. */
  list(nowMs: number, rule?: string): BlockedKey[] {
    const blocks: BlockedKey[] = [];
    let looks = 0;
    for (const [key, state] of this.#states.usedUp()) {
      if (++looks > MOST_LOOKS || blocks.length === MOST_TOLD) break;
      if (!isBlockKey(key) || state.endsAtMs <= nowMs) continue;
      if (rule !== undefined && readCounterKey(key).rule !== rule) continue;
      const leftMs = blockLeftMs(state as BlockState, nowMs);
      if (leftMs > 0) blocks.push({ key, leftMs });
    }
    return blocks;
  }

  #find(key: string, nowMs: number): BlockState | undefined {
    const state = this.#states.get(key) as BlockState | undefined;
    return state !== undefined && state.endsAtMs >= nowMs ? state : undefined;
  }

  #keep(key: string, state: BlockState, nowMs: number): void {
    this.#states.delete(key);
    this.#states.set(key, state, nowMs);
    this.#states.mark(key, state, true, nowMs);
  }
}
