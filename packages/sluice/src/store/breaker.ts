/**
 * Stops calling a store that does not answer. Closed: calls pass. After a few failures in a row: open, calls are spared.
 * Once per interval one call passes as a probe; its success closes the breaker, its failure opens it for another interval.
 * Pure: time is an argument.
 */

export interface BreakerOptions {
  /** Failures in a row that open it. */
  failures: number;
  /** How long between two probes. */
  intervalMs: number;
}

export class Breaker {
  readonly #options: BreakerOptions;
  #failuresInRow = 0;
  #nextProbeMs = 0;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get open(): boolean {
    return this.#failuresInRow >= this.#options.failures;
  }

  /** Whether a call may be made now. While open, a yes is the interval's one probe. */
  mayCall(nowMs: number): boolean {
    if (!this.open) return true;
    if (nowMs < this.#nextProbeMs) return false;
    this.#nextProbeMs = nowMs + this.#options.intervalMs;
    return true;
  }

  succeeded(): void {
    this.#failuresInRow = 0;
  }

  failed(nowMs: number): void {
    this.#failuresInRow++;
    if (this.#failuresInRow === this.#options.failures) this.#nextProbeMs = nowMs + this.#options.intervalMs;
  }
}
