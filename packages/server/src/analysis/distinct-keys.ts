/**
 * How many different keys came, exactly up to a bound; beyond it a lower bound, so that a log of a million clients does not
 * fill the memory. Pure.
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

  /** Whether no key came after the bound was reached. */
  get isExact(): boolean {
    return this.#isExact;
  }
}
