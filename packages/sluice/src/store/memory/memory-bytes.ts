/**
 * Heap size of the memory store's entries: estimates for 64-bit V8, slightly above what was measured (`bench/memory-bytes.mjs` compares
 * them). Keys and ids count with their real length, because clients choose them. Pure.
 */
import type { ConcurrencyState } from "../../algorithms/concurrency.js";
import type { State } from "../../algorithms/model.js";
import type { RollingWindowState } from "../../algorithms/rolling-window.js";
import type { VacantState } from "../../algorithms/turns.js";
import type { Check } from "../../check.js";
import type { Stored } from "../../keys.js";

/** A Map entry with its share of the table, the header of its key, and a state of a few numbers. */
const COUNTER = 200;
/** A typed array whose buffer is outside the heap. */
const RING = 200;
const LEASE = 150;
const TURN = 150;
/** A record with its fingerprint, reply and receipt, and what each check adds. */
const RECORD = 450;
const RECORDED_CHECK = 250;

/** A hold with its digest, and what each of its numbers adds. */
const HOLD = 400;
const HELD_UNITS = 50;

/** V8 knows that a one-byte string cannot match, so this does not scan it; counting its bytes would. */
const BEYOND_LATIN_1 = /[\u0100-\uffff]/;

/** V8 stores a string with one byte per character, or two if any character is beyond Latin-1. */
function textBytes(text: string): number {
  return BEYOND_LATIN_1.test(text) ? 2 * text.length : text.length;
}

export function counterBytes(key: string, state: State): number {
  const bytes = COUNTER + textBytes(key);
  if ("ring" in state) return bytes + RING + (state as RollingWindowState).ring.byteLength;
  if ("turns" in state) return bytes + (state as VacantState).turns.length * TURN;
  if ("leases" in state) return bytes + (state as ConcurrencyState).leases.size * LEASE;
  return bytes;
}

export function recordBytes(id: string, checks: readonly Check[]): number {
  let bytes = RECORD + textBytes(id);
  for (let i = 0; i < checks.length; i++) bytes += RECORDED_CHECK + textBytes(checks[i]!.key);
  return bytes;
}

export function holdBytes(name: string, numbers: number): number {
  return HOLD + textBytes(name) + numbers * HELD_UNITS;
}

/** The part of a state that changes with its size; undefined for counters of fixed size. */
export function sizedPart(stored: Stored, state: State): unknown {
  if (stored === "rolling-window" || stored === "rolling-window-packed") return (state as RollingWindowState).ring;
  return stored === "concurrency" ? (state as ConcurrencyState).leases.size : undefined;
}
