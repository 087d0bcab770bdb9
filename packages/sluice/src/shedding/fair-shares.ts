/**
 * Divides what a class may still pass among its keys, so that a key with ten times the traffic gets no more than the others (max-min
 * fairness). Stochastic: keys fall into a fixed number of buckets by hash, so that a flood of made-up keys costs no memory; the seed of the hash
 * changes every few minutes, so that two keys do not share a bucket for long. Pure.
 */

export const BUCKETS = 256;

export class FairShares {
  /** Requests that asked, by bucket; older ones count less. */
  readonly #demand = new Float64Array(BUCKETS);
  /** The share of each bucket's requests that may pass. */
  readonly #shares = new Float64Array(BUCKETS).fill(1);
  readonly #sorted = new Float64Array(BUCKETS);

  note(bucket: number): void {
    this.#demand[bucket]!++;
  }

  shareOf(bucket: number): number {
    return this.#shares[bucket]!;
  }

  /** Divides anew where the share `pass` of all requests may pass, then lets the demand age by a factor. */
  divide(pass: number, aging: number): void {
    const level = pass >= 1 ? Number.POSITIVE_INFINITY : this.#levelAt(pass);
    for (let i = 0; i < BUCKETS; i++) {
      const demand = this.#demand[i]!;
      this.#shares[i] = demand <= level ? 1 : level / demand;
      this.#demand[i] = demand * aging;
    }
  }

  /** The most that any bucket gets, so that all together get the share `pass` of their demand (water filling). */
  #levelAt(pass: number): number {
    const sorted = this.#sorted;
    sorted.set(this.#demand);
    sorted.sort();
    let left = 0;
    for (let i = 0; i < BUCKETS; i++) left += sorted[i]!;
    left *= pass;
    for (let i = 0; i < BUCKETS; i++) {
      const each = left / (BUCKETS - i);
      if (sorted[i]! >= each) return each;
      left -= sorted[i]!;
    }
    return Number.POSITIVE_INFINITY;
  }
}
