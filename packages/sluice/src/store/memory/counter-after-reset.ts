/**
 * What a reset leaves behind, so that a charge from before it is never refunded out of one from after it. Pure. In: the time, and the last
 * reset. Out: the instant that later charges of the same millisecond carry, and an empty counter.
 */
import type { State } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Stored } from "../../keys.js";

const RESET_STEP_MS = 2 ** -10;

/** Resets within one millisecond differ by a fraction of it. */
export function nextResetMs(lastResetMs: number, nowMs: number): number {
  const lastMs = Math.floor(lastResetMs) === nowMs ? lastResetMs : nowMs;
  return Math.min(lastMs + RESET_STEP_MS, nowMs + 1 - RESET_STEP_MS);
}

/** An empty counter, born by the reset, that lives until its millisecond is over. */
export function bornByReset(stored: Stored, resetAtMs: number, nowMs: number): State {
  const state = models[stored].fresh();
  state.bornMs = resetAtMs;
  state.endsAtMs = nowMs + 1;
  return state;
}

/**
 * An empty counter whose clock is ahead, valid until that time is over: what reset.lua leaves. Undefined for forms where it leaves none.
 */
export function emptyAhead(stored: Stored, atMs: number): State | undefined {
  if (stored === "concurrency" || stored === "pool") return undefined;
  const state = models[stored].fresh() as State & { lastMs?: number; debt?: unknown };
  if (state.lastMs === undefined) state.debt = { units: 0, atMs, fromMs: atMs };
  else state.lastMs = atMs;
  state.endsAtMs = atMs + 1;
  return state;
}
