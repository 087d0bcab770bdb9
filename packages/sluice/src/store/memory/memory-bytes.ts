/**
 * How many bytes of heap the memory store's entries take: estimates for V8 on 64 bits, a little above what was measured
 * (`bench/memory-bytes.mjs` compares them). Keys and ids count with their real length: clients choose them. Pure.
 */
import type { ConcurrencyState } from "../../algorithms/concurrency.js";
import type { State } from "../../algorithms/model.js";
import type { RollingWindowState } from "../../algorithms/rolling-window.js";
import type { VacantState } from "../../algorithms/turns.js";
import type { Check } from "../../check.js";
import type { Stored } from "../../keys.js";

/** An entry of a Map with its share of the table, the header of its key, and a state of a few numbers. */
const COUNTER = 200;
/** A typed array that lies outside of the heap. */
const RING = 200;
const LEASE = 150;
const TURN = 150;
/** A record with its fingerprint, reply and receipt, and what each check adds to it. */
const RECORD = 450;
const RECORDED_CHECK = 250;

/** A hold with its digest, and what each number in it adds. */
const HOLD = 400;
const HELD_UNITS = 50;

/** In a text of one byte a character this finds nothing without looking, which a count of its bytes does not. */
const BEYOND_LATIN_1 = /[\u0100-\uffff]/;

/** V8 keeps a text in one byte a character, or in two if any is beyond Latin-1. */
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

/** The part that changes with a counter's size; undefined for counters of a few numbers. */
export function sizedPart(stored: Stored, state: State): unknown {
  if (stored === "rolling-window" || stored === "rolling-window-packed") return (state as RollingWindowState).ring;
  return stored === "concurrency" ? (state as ConcurrencyState).leases.size : undefined;
}
