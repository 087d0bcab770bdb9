/**
 * The most that any key had in a rolling window, exactly, and the key that had it. Each key keeps the entries of its own window, so that a
 * request touches nothing but its key. Two generations: a key without a request in a whole one is forgotten with it, unread.
 * Memory: at most the requests of the last two windows, and their keys. Pure; times must not go back.
 */

interface KeyWindow {
  /** Time and cost in turn, oldest first; those before `head` have left. */
  entries: number[];
  head: number;
  sum: number;
}

/** Entries that left are cut off in steps: one by one, each cut would move all others. */
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
    const known = this.#young.get(key) ?? this.#again(key);
    if (known === undefined) {
      this.#young.set(key, { entries: [atMs, cost], head: 0, sum: cost });
      this.#judge(key, cost, atMs);
      return;
    }
    leave(known, atMs - this.#windowMs);
    if (known.head === known.entries.length) {
      known.entries = [atMs, cost];
      known.head = 0;
      known.sum = cost;
    } else {
      known.entries.push(atMs, cost);
      known.sum += cost;
    }
    this.#judge(key, known.sum, atMs);
  }

  /** A key of the old generation that comes again is young. */
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

  #judge(key: string, sum: number, atMs: number): void {
    if (this.#worst === undefined || sum > this.#worst.max) this.#worst = { key, max: sum, atMs };
  }

  /** How many keys are remembered. */
  get keyCount(): number {
    let both = 0;
    for (const key of this.#old.keys()) if (this.#young.has(key)) both++;
    return this.#young.size + this.#old.size - both;
  }

  /** How many entries are remembered, those that left and were not cut off yet included. */
  get entryCount(): number {
    const windows = new Set([...this.#young.values(), ...this.#old.values()]);
    let count = 0;
    for (const { entries } of windows) count += entries.length / 2;
    return count;
  }

  /** The first of several; undefined before the first request. */
  worst(): { readonly key: string; readonly max: number; readonly atMs: number } | undefined {
    return this.#worst;
  }
}

/** An entry leaves exactly one window after it came. */
function leave(known: KeyWindow, upToMs: number): void {
  const { entries } = known;
  let { head } = known;
  while (head < entries.length && entries[head]! <= upToMs) {
    known.sum -= entries[head + 1]!;
    head += 2;
  }
  if (head >= CUT && head < entries.length && 2 * head >= entries.length) {
    known.entries = entries.slice(head);
    head = 0;
  }
  known.head = head;
}
