/**
 * Divides what a class may still pass among its keys, so that a key with ten times the traffic gets no more than the others (max-min
 * fairness). Stochastic: keys are hashed into a fixed number of buckets, so that a flood of made-up keys costs no memory; the seed changes
 * every few minutes, so that two keys do not share a bucket for long.
 *
 * Three rows of buckets, each using different bits of the hash (a count-min sketch): a key's demand is the minimum over its buckets, and
 * the level is the lowest of the rows. Two keys that share a bucket in one row hardly ever share one in another: so they neither split one
 * share nor leave what they do not use to the others.
 *
 * What passes does not depend on the shares alone: while there is room, more passes, and a greedy key asks most often. So what each key
 * really got is counted too, and a key that got more than its part has a smaller share until it is even. Pure.
 */

export const BUCKETS = 256;
const ROWS = 3;
const BITS = 8;
/** How strongly a key that got more than its part is held back: its share shrinks by this power of the excess, at most to this fraction. */
const CORRECTION = 6;
const LEAST_CORRECTION = 0.5;

/** Scratch buffer for `divide`. One for all instances, because `divide` is synchronous. */
const sorted = new Float32Array(BUCKETS);

export class FairShares {
  /** Requests that asked and requests that passed, by bucket, row by row; older ones count less. */
  readonly #demand = new Float32Array(ROWS * BUCKETS);
  readonly #passed = new Float32Array(ROWS * BUCKETS);
  #passedTotal = 0;
  /** The most that any key may get of what may pass now, and the most that any should have got of what has passed. */
  #level = Number.POSITIVE_INFINITY;
  #passedLevel = Number.POSITIVE_INFINITY;

  /** Counts a request that asks. `hash`: of its key, evenly distributed over 32 bits. */
  note(hash: number): void {
    for (let row = 0; row < ROWS; row++) this.#demand[bucketOf(hash, row)]!++;
  }

  /** Counts a request that has passed. */
  notePassed(hash: number): void {
    for (let row = 0; row < ROWS; row++) this.#passed[bucketOf(hash, row)]!++;
    this.#passedTotal++;
  }

  /** The share of the key's requests that may pass. */
  shareOf(hash: number): number {
    const demand = leastOf(this.#demand, hash);
    if (demand <= this.#level) return 1;
    const passed = leastOf(this.#passed, hash);
    const share = this.#level / demand;
    if (passed <= this.#passedLevel) return share;
    return share * Math.max(LEAST_CORRECTION, (this.#passedLevel / passed) ** CORRECTION);
  }

  /** Recomputes the shares if the fraction `pass` of all requests may pass, then ages the counts by a factor. */
  divide(pass: number, aging: number): void {
    let level = Number.POSITIVE_INFINITY;
    let passedLevel = Number.POSITIVE_INFINITY;
    for (let row = 0; pass < 1 && row < ROWS; row++) {
      const total = this.#sort(row);
      level = Math.min(level, levelAt(total * pass));
      passedLevel = Math.min(passedLevel, levelAt(this.#passedTotal));
    }
    this.#level = level * aging;
    this.#passedLevel = passedLevel * aging;
    this.#passedTotal *= aging;
    for (let i = 0; i < ROWS * BUCKETS; i++) {
      this.#demand[i]! *= aging;
      this.#passed[i]! *= aging;
    }
  }

  /** Sorts the demand of a row; returns the sum. */
  #sort(row: number): number {
    sorted.set(this.#demand.subarray(row * BUCKETS, (row + 1) * BUCKETS));
    sorted.sort();
    let total = 0;
    for (let i = 0; i < BUCKETS; i++) total += sorted[i]!;
    return total;
  }
}

/** The most that any bucket of `sorted` may get so that all together get this total (water filling). */
function levelAt(total: number): number {
  let left = total;
  for (let i = 0; i < BUCKETS; i++) {
    const each = left / (BUCKETS - i);
    if (sorted[i]! >= each) return each;
    left -= sorted[i]!;
  }
  return Number.POSITIVE_INFINITY;
}

function leastOf(counts: Float32Array, hash: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let row = 0; row < ROWS; row++) least = Math.min(least, counts[bucketOf(hash, row)]!);
  return least;
}

function bucketOf(hash: number, row: number): number {
  return row * BUCKETS + ((hash >>> (row * BITS)) & (BUCKETS - 1));
}
