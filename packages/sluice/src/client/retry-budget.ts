/**
 * A retry budget: retries after refusals of an overloaded backend are at most a fraction of the requests, so that a fleet of callers does
 * not multiply the load of a backend that already has too much. A token bucket: each request adds the fraction, each retry takes one. Pure.
 */

/** The capacity, also available from the start: a program with few requests may retry. */
const MOST_TOKENS = 10;

export class RetryBudget {
  readonly #share: number;
  #tokens = MOST_TOKENS;

  constructor(share: number) {
    this.#share = share;
  }

  requested(): void {
    this.#tokens = Math.min(MOST_TOKENS, this.#tokens + this.#share);
  }

  /** Takes one retry from the budget; false if there is none left. */
  take(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
