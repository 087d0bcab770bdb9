/**
 * Blocks: a key that was refused stays refused for a while (`blockFor`). A block is stored beside the counter, so that the counter itself
 * stays exact. Twin: block-state.lua. Pure; time is an argument.
 *
 * A rule may have several lengths: a key that is blocked again gets the next one. The level is remembered after a block's end for as long
 * as the block lasted.
 */
import type { Reason } from "../decision.js";
import type { State, Verdict } from "./model.js";

export interface BlockState extends State {
  untilMs: number;
  /** The full length. The time left never exceeds it, so a clock that steps back prolongs a block by no more than this. */
  lengthMs: number;
  /** How many blocks followed each other, up to the number of the rule's lengths. */
  level: number;
}

export function freshBlock(): BlockState {
  return { endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, untilMs: 0, lengthMs: 0, level: 0 };
}

/**
 * How long the key stays blocked; 0 if it is not. A block further away than it is long was begun by a clock that was ahead: it is moved to
 * now.
 */
export function blockLeftMs(state: BlockState, nowMs: number): number {
  const aheadMs = state.untilMs - nowMs - state.lengthMs;
  if (aheadMs > 0) {
    state.untilMs -= aheadMs;
    state.endsAtMs -= aheadMs;
  }
  return Math.max(0, state.untilMs - nowMs);
}

/** Begins the next block. `lengthsMs`: the rule's lengths. */
export function beginBlock(state: BlockState, lengthsMs: readonly number[], nowMs: number): void {
  const level = Math.min(levelAt(state, nowMs) + 1, lengthsMs.length);
  const grows = lengthsMs.length > 1;
  state.lengthMs = lengthsMs[level - 1]!;
  // With a single length, no level is kept: it would end with its key, and Redis may still show a key whose expiry has passed.
  state.level = grows ? level : 0;
  state.untilMs = nowMs + state.lengthMs;
  state.endsAtMs = state.untilMs + (grows ? state.lengthMs : 0);
}

/** How long the next block would last. */
export function nextBlockMs(state: BlockState, lengthsMs: readonly number[], nowMs: number): number {
  return lengthsMs[Math.min(levelAt(state, nowMs), lengthsMs.length - 1)]!;
}

function levelAt({ level, untilMs, lengthMs }: BlockState, nowMs: number): number {
  return nowMs < untilMs + lengthMs ? level : 0;
}

/** Whether a refusal begins a block: only one caused by the key's own traffic. */
export function beginsBlock(reason: Reason | undefined): boolean {
  return reason === "limit" || reason === "min-interval";
}

/** Raises the waits of a verdict to at least `leftMs`. */
export function putOff(found: Verdict, leftMs: number): void {
  found.retryAfterMs = Math.max(found.retryAfterMs, leftMs);
  found.resetAfterMs = Math.max(found.resetAfterMs, leftMs);
}

/** Refuses a key that is blocked, whatever its counter holds. */
export function refuseBlocked(found: Verdict, leftMs: number): void {
  found.allowed = false;
  found.delayMs = 0;
  found.remaining = Math.min(found.remaining, 0);
  found.reason = "blocked";
  putOff(found, leftMs);
}
