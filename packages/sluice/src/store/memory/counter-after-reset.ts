/**
 * What a reset leaves behind, so that a charge from before it is never refunded out of one from after it. Pure.
 * In: the time, and the last reset. Out: the instant at which later charges of the same millisecond are made, and an empty counter.
 */
import type { State } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Stored } from "../../keys.js";

const RESET_STEP_MS = 2 ** -10;

/** Resets of one millisecond are told apart by a fraction of it. */
export function nextResetMs(lastResetMs: number, nowMs: number): number {
  const lastMs = Math.floor(lastResetMs) === nowMs ? lastResetMs : nowMs;
  return Math.min(lastMs + RESET_STEP_MS, nowMs + 1 - RESET_STEP_MS);
}

/** An empty counter that was born by the reset, and lives through its millisecond. */
export function bornByReset(stored: Stored, resetAtMs: number, nowMs: number): State {
  const state = models[stored].fresh();
  state.bornMs = resetAtMs;
  state.endsAtMs = nowMs + 1;
  return state;
}

/** An empty counter whose clock is ahead, until it is over: as reset.lua leaves one. Undefined where that leaves none. */
export function emptyAhead(stored: Stored, atMs: number): State | undefined {
  if (stored === "concurrency" || stored === "pool") return undefined;
  const state = models[stored].fresh() as State & { lastMs?: number; debt?: unknown };
  if (state.lastMs === undefined) state.debt = { units: 0, atMs, fromMs: atMs };
  else state.lastMs = atMs;
  state.endsAtMs = atMs + 1;
  return state;
}
