/**
 * A circuit breaker: stops calls to a store that does not answer. Closed: calls pass. Open, after a few consecutive failures: calls are
 * skipped. Half-open: once per interval one call passes as a probe; success closes the breaker, failure opens it for another interval.
 * Pure: time is an argument.
 */
import type { BreakerState } from "../store-stats.js";

interface BreakerOptions {
  /** Consecutive failures that open it. */
  failures: number;
  /** The time between two probes. */
  intervalMs: number;
}

export class CircuitBreaker {
  readonly #options: BreakerOptions;
  #failuresInRow = 0;
  #nextProbeMonotonicMs = 0;
  #probing = false;
  /** When the most recent failed call was sent. */
  #failedSentMonotonicMs = Number.NEGATIVE_INFINITY;
  #lastAttemptMonotonicMs = Number.NEGATIVE_INFINITY;
  /** Why the last call failed; undefined after a success. */
  cause: unknown;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get open(): boolean {
    return this.#failuresInRow >= this.#options.failures;
  }

  get state(): BreakerState {
    return this.open ? (this.#probing ? "half-open" : "open") : "closed";
  }

  /** Whether a call failed or was skipped since then, with no success after it. */
  failedSince(sinceMonotonicMs: number): boolean {
    return this.#failuresInRow > 0 && this.#lastAttemptMonotonicMs >= sinceMonotonicMs;
  }

  /**
   * Whether a call may be made now. While open, true means that this call is the interval's one probe. A connection that is newer than
   * every failed call is probed at once: otherwise failure policies would answer for a healthy Redis until the interval ends. (Cluster
   * nodes wait for the interval: the client does not report when each one connected.)
   */
  mayCall(nowMonotonicMs: number, connectedAtMonotonicMs = Number.NEGATIVE_INFINITY): boolean {
    if (!this.open) return true;
    this.#lastAttemptMonotonicMs = nowMonotonicMs;
    const isNew = !this.#probing && connectedAtMonotonicMs > this.#failedSentMonotonicMs;
    if (nowMonotonicMs < this.#nextProbeMonotonicMs && !isNew) return false;
    this.#nextProbeMonotonicMs = nowMonotonicMs + this.#options.intervalMs;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#failuresInRow = 0;
    this.#probing = false;
    this.cause = undefined;
  }

  failed(nowMonotonicMs: number, cause?: unknown, sentAtMonotonicMs = nowMonotonicMs): void {
    this.#failuresInRow++;
    this.#probing = false;
    this.#lastAttemptMonotonicMs = nowMonotonicMs;
    this.#failedSentMonotonicMs = Math.max(this.#failedSentMonotonicMs, sentAtMonotonicMs);
    this.cause = cause;
    if (this.#failuresInRow === this.#options.failures)
      this.#nextProbeMonotonicMs = nowMonotonicMs + this.#options.intervalMs;
  }
}
