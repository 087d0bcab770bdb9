/**
 * Seeded randomness. Every choice of a world comes from here, so a seed repeats it. A generator can be forked by a label: what one
 * part draws then does not depend on how much another part drew, and a run that is shrunk keeps the fates of what is left.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** In [0, 1) (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    const state = this.#state;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** A whole number, both ends included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  of<T>(values: readonly T[]): T {
    return values[this.whole(0, values.length - 1)]!;
  }

  /** The wait for the next of events that come at random, so many a ms (Poisson). */
  waitMs(perMs: number): number {
    return -Math.log(1 - this.next()) / perMs;
  }
}

/** Mixes numbers into one seed (the finaliser of MurmurHash3, once for each). */
export function mixSeed(...parts: readonly number[]): number {
  let hash = 0x2545f491;
  for (const part of parts) {
    hash = Math.imul(hash ^ part, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return hash | 0;
}
