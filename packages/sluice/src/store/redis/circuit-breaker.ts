/**
 * A circuit breaker: stops calling a store that does not answer. Closed: calls pass. After a few failures in a row: open, calls are
 * spared. Once per interval one call passes as a probe (half-open); its success closes the breaker, its failure opens it for
 * another interval. Pure: time is an argument.
 */
import type { BreakerState } from "../store-stats.js";

interface BreakerOptions {
  /** Failures in a row that open it. */
  failures: number;
  /** How long between two probes. */
  intervalMs: number;
}

export class CircuitBreaker {
  readonly #options: BreakerOptions;
  #failuresInRow = 0;
  #nextProbeMonotonicMs = 0;
  #probing = false;
  /** When the newest call that failed was sent. */
  #failedSentMonotonicMs = Number.NEGATIVE_INFINITY;
  #lastAttemptMonotonicMs = Number.NEGATIVE_INFINITY;
  /** Why the last call failed; undefined once one has succeeded. */
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

  /** Whether a call failed or was spared since then, and none has succeeded after it. */
  failedSince(sinceMonotonicMs: number): boolean {
    return this.#failuresInRow > 0 && this.#lastAttemptMonotonicMs >= sinceMonotonicMs;
  }

  /**
   * Whether a call may be made now. While open, a yes is the interval's one probe. A connection that is younger than every call that
   * failed is probed at once: policies would otherwise answer for a healthy Redis until the interval ends. (Nodes of a cluster wait for
   * the interval: the client does not say when each was connected.)
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
