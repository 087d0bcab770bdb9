/**
 * The exact maximum of any key in a rolling window, and that key. Each key keeps its own window's entries, so that a request touches
 * nothing but its key. Two generations: keys without a request in a whole generation are dropped with it, without being visited.
 * Memory: at most the requests of the last two windows, and their keys. Pure; times must not go back.
 */

export interface KeyWindow {
  /** Alternating time and cost, oldest first, from `head` to `end`; those before have expired, those after are unused. */
  entries: number[];
  head: number;
  end: number;
  sum: number;
}

function newWindow(): KeyWindow {
  return { entries: [], head: 0, end: 0, sum: 0 };
}

/** Prefetches what the next request will need of a window. */
export function touchWindow({ entries, head, end }: KeyWindow): number {
  return head < end ? entries[head]! + entries[end - 1]! : 0;
}

/** Expired entries are removed in batches, since each removal moves all others. A shorter list is reused as it is. */
const CUT = 64;

export class WorstWindow {
  readonly #windowMs: number;
  #young = new Map<string, KeyWindow>();
  #old = new Map<string, KeyWindow>();
  #turnMs = Number.NEGATIVE_INFINITY;
  #worst: { key: string; max: number; atMs: number } | undefined;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(key: string, cost: number, atMs: number): void {
    if (atMs >= this.#turnMs) this.#turn(atMs);
    let known = this.#young.get(key) ?? this.#again(key);
    if (known === undefined) {
      known = newWindow();
      this.#young.set(key, known);
    }
    this.addTo(known, key, cost, atMs);
  }

  /** For a key whose window the caller keeps, without a look-up. */
  addTo(known: KeyWindow, key: string, cost: number, atMs: number): void {
    leave(known, atMs - this.#windowMs);
    known.entries[known.end] = atMs;
    known.entries[known.end + 1] = cost;
    known.end += 2;
    known.sum += cost;
    if (this.#worst === undefined || known.sum > this.#worst.max) this.#worst = { key, max: known.sum, atMs };
  }

  /** Whether all entries have expired. */
  isOver({ entries, end }: KeyWindow, atMs: number): boolean {
    return end === 0 || entries[end - 2]! <= atMs - this.#windowMs;
  }

  /** Moves a key that recurs from the old generation to the young one. */
  #again(key: string): KeyWindow | undefined {
    const known = this.#old.get(key);
    if (known !== undefined) this.#young.set(key, known);
    return known;
  }

  #turn(atMs: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#turnMs = atMs + this.#windowMs;
  }

  /** The number of keys in memory. */
  get keyCount(): number {
    let both = 0;
    for (const key of this.#old.keys()) if (this.#young.has(key)) both++;
    return this.#young.size + this.#old.size - both;
  }

  /** The number of entries in memory, including expired ones not removed yet. */
  get entryCount(): number {
    const windows = new Set([...this.#young.values(), ...this.#old.values()]);
    let count = 0;
    for (const { entries } of windows) count += entries.length / 2;
    return count;
  }

  /** The first of equal ones; undefined before the first request. */
  worst(): { readonly key: string; readonly max: number; readonly atMs: number } | undefined {
    return this.#worst;
  }
}

/** An entry expires exactly one window after it arrived. */
function leave(known: KeyWindow, upToMs: number): void {
  const { entries, end } = known;
  let { head } = known;
  while (head < end && entries[head]! <= upToMs) {
    known.sum -= entries[head + 1]!;
    head += 2;
  }
  if (head === end) {
    // A sum of fractions would not be 0 again.
    known.sum = 0;
    known.head = 0;
    known.end = 0;
    if (entries.length > CUT) known.entries = [];
  } else if (head >= CUT && 2 * head >= end) {
    known.entries = entries.slice(head, end);
    known.head = 0;
    known.end = end - head;
  } else known.head = head;
}
