/**
 * The exact maximum of each key over all rolling windows: every request enters the window at its time and leaves one window later. Memory:
 * one entry per request in the last window, and one per key; `WorstWindow` forgets keys. Pure; times must not go back.
 */

interface KeySum {
  /** Total cost of the requests in the window. */
  inWindow: number;
  max: number;
  /** When the window with the maximum ended. */
  maxAtMs: number;
}

const FIRST_SIZE = 1_024;

export class RollingMaxima {
  readonly #windowMs: number;
  readonly #keys = new Map<string, KeySum>();
  /** A ring buffer of the window's entries, oldest first. */
  #times = new Float64Array(FIRST_SIZE);
  #costs = new Float64Array(FIRST_SIZE);
  #sums: KeySum[] = new Array(FIRST_SIZE);
  #head = 0;
  #count = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  get windowMs(): number {
    return this.#windowMs;
  }

  add(key: string, cost: number, atMs: number): void {
    this.#leave(atMs - this.#windowMs);
    let sum = this.#keys.get(key);
    if (sum === undefined) {
      sum = { inWindow: 0, max: 0, maxAtMs: atMs };
      this.#keys.set(key, sum);
    }
    sum.inWindow += cost;
    if (sum.inWindow > sum.max) {
      sum.max = sum.inWindow;
      sum.maxAtMs = atMs;
    }
    if (this.#count === this.#times.length) this.#grow();
    const at = (this.#head + this.#count) & (this.#times.length - 1);
    this.#times[at] = atMs;
    this.#costs[at] = cost;
    this.#sums[at] = sum;
    this.#count++;
  }

  /** An entry expires exactly one window after it arrived. */
  #leave(upToMs: number): void {
    const mask = this.#times.length - 1;
    while (this.#count > 0 && this.#times[this.#head]! <= upToMs) {
      this.#sums[this.#head]!.inWindow -= this.#costs[this.#head]!;
      this.#head = (this.#head + 1) & mask;
      this.#count--;
    }
  }

  #grow(): void {
    const size = this.#times.length * 2;
    const mask = this.#times.length - 1;
    const times = new Float64Array(size);
    const costs = new Float64Array(size);
    const sums = new Array<KeySum>(size);
    for (let i = 0; i < this.#count; i++) {
      const from = (this.#head + i) & mask;
      times[i] = this.#times[from]!;
      costs[i] = this.#costs[from]!;
      sums[i] = this.#sums[from]!;
    }
    this.#times = times;
    this.#costs = costs;
    this.#sums = sums;
    this.#head = 0;
  }

  get keyCount(): number {
    return this.#keys.size;
  }

  /** The maxima of all keys, in ascending order. */
  maxima(): Float64Array {
    return Float64Array.from(this.#keys.values(), ({ max }) => max).sort();
  }

  /** The keys with the highest maxima, in descending order. */
  top(most: number): { key: string; max: number; atMs: number }[] {
    return [...this.#keys]
      .map(([key, { max, maxAtMs }]) => ({ key, max, atMs: maxAtMs }))
      .sort((a, b) => b.max - a.max)
      .slice(0, most);
  }
}
