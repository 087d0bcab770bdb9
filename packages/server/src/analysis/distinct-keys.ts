/**
 * Counts distinct keys, exactly up to a bound; beyond it as a lower bound, so that a log with a million clients does not fill the memory.
 * Pure.
 */
export class DistinctKeys {
  readonly #most: number;
  readonly #keys = new Set<string>();
  #isExact = true;

  constructor(most: number) {
    this.#most = most;
  }

  add(key: string): void {
    if (this.#keys.size < this.#most) this.#keys.add(key);
    else if (this.#isExact && !this.#keys.has(key)) this.#isExact = false;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Whether the bound was never exceeded. */
  get isExact(): boolean {
    return this.#isExact;
  }
}
