/**
 * Interns values derived from pieces of a log, by their bytes: a repeated client, path or duration is not decoded again.
 * Bounded: it clears itself when full, and the busiest entries are back at once. Pieces must be ASCII; the caller ensures it.
 */
import { hashOf, isSame, LastView, viewOf } from "./byte-words.js";

const FIRST_ENTRIES = 256;
const MOST_ENTRIES = 2 ** 15;
const MOST_BYTES = 2 ** 20;
/** Slot fields, as numbers: the entry's index plus 1 (0: empty), its hash, the start of its bytes, and their number. */
const SLOT_BITS = 2;
const SLOT = 2 ** SLOT_BITS;
/** Slots per entry: keeps probing short. */
const SLOTS_PER_ENTRY = 2;
/** A client may choose paths with equal hashes: beyond this many probes the search is given up, and nothing is remembered. */
const MOST_PROBES = 32;
/** Longer pieces rarely repeat. */
const LONGEST = 256;

export class ByteMemo<T> {
  readonly #make: (text: string) => T;
  readonly #source = new LastView();
  /** Capacity before the tables grow. */
  #room = FIRST_ENTRIES;
  /** By hash. All fields that a search needs are adjacent, because the table exceeds the CPU's fastest caches. */
  #slots = new Int32Array(SLOT * SLOTS_PER_ENTRY * FIRST_ENTRIES);
  #kept = new Uint8Array(2 ** 12);
  #keptView = viewOf(this.#kept);
  #keptEnd = 0;
  readonly #values: T[] = [];

  constructor(make: (text: string) => T) {
    this.#make = make;
  }

  get size(): number {
    return this.#values.length;
  }

  get(bytes: Buffer, from: number, end: number): T {
    const length = end - from;
    if (length > LONGEST) return this.#make(bytes.toString("latin1", from, end));
    const view = this.#source.of(bytes);
    const hash = hashOf(view, from, end);
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = placeOf(hash) & mask;
    for (let probes = 0; probes < MOST_PROBES; probes++, slot = (slot + SLOT) & mask) {
      const entry = slots[slot]! - 1;
      if (entry < 0) return this.#add(hash, bytes, from, end);
      if (slots[slot + 1] !== hash || slots[slot + 3] !== length) continue;
      if (isSame(view, from, this.#keptView, slots[slot + 2]!, length)) return this.#values[entry]!;
    }
    return this.#make(bytes.toString("latin1", from, end));
  }

  #add(hash: number, bytes: Buffer, from: number, end: number): T {
    const value = this.#make(bytes.toString("latin1", from, end));
    const entry = this.#values.length;
    const start = this.#keptEnd;
    const behind = start + end - from;
    if (entry === MOST_ENTRIES || behind > MOST_BYTES) {
      this.#slots.fill(0);
      this.#values.length = 0;
      this.#keptEnd = 0;
      return value;
    }
    if (entry === this.#room) this.#grow();
    if (behind > this.#kept.length) {
      const kept = new Uint8Array(2 * this.#kept.length);
      kept.set(this.#kept);
      this.#kept = kept;
      this.#keptView = viewOf(kept);
    }
    for (let at = from; at < end; at++) this.#kept[start + at - from] = bytes[at]!;
    this.#keptEnd = behind;
    this.#values.push(value);
    file(this.#slots, entry + 1, hash, start, end - from);
    return value;
  }

  #grow(): void {
    this.#room *= 2;
    const before = this.#slots;
    const slots = new Int32Array(SLOT * SLOTS_PER_ENTRY * this.#room);
    for (let at = 0; at < before.length; at += SLOT)
      if (before[at] !== 0) file(slots, before[at]!, before[at + 1]!, before[at + 2]!, before[at + 3]!);
    this.#slots = slots;
  }
}

function placeOf(hash: number): number {
  return hash << SLOT_BITS;
}

function file(slots: Int32Array, entry: number, hash: number, start: number, length: number): void {
  const mask = slots.length - 1;
  let slot = placeOf(hash) & mask;
  while (slots[slot] !== 0) slot = (slot + SLOT) & mask;
  slots[slot] = entry;
  slots[slot + 1] = hash;
  slots[slot + 2] = start;
  slots[slot + 3] = length;
}
