/**
 * A retry budget: retries after an overloaded backend's refusals are at most a share of the requests, so that a fleet of callers does not
 * multiply the load of a backend that has too much already. A token bucket: each request adds the share, each retry takes one. Pure.
 */

/** Saved up at most, and there from the start: a program of few requests may retry. */
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

  /** Whether one more retry is within the budget; then it is taken. */
  take(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
