/**
 * Stops calling a store that does not answer. Closed: calls pass. After a few failures in a row: open, calls are spared.
 * Once per interval one call passes as a probe; its success closes the breaker, its failure opens it for another interval.
 * Pure: time is an argument.
 */

import type { BreakerState } from "../store-stats.js";

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
  #probing = false;
  /** When the newest call that failed was sent. */
  #failedSentMs = Number.NEGATIVE_INFINITY;
  #lastInVainMs = Number.NEGATIVE_INFINITY;
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

  /** Whether somebody called in vain since then, and nobody with success after that. */
  failedSince(sinceMs: number): boolean {
    return this.#failuresInRow > 0 && this.#lastInVainMs >= sinceMs;
  }

  /**
   * Whether a call may be made now. While open, a yes is the interval's one probe. A connection that is younger than every call that
   * failed is probed at once: nothing is known against it.
   */
  mayCall(nowMs: number, connectedAtMs = Number.NEGATIVE_INFINITY): boolean {
    if (!this.open) return true;
    this.#lastInVainMs = nowMs;
    const isNew = !this.#probing && connectedAtMs > this.#failedSentMs;
    if (nowMs < this.#nextProbeMs && !isNew) return false;
    this.#nextProbeMs = nowMs + this.#options.intervalMs;
    this.#probing = true;
    return true;
  }

  succeeded(): void {
    this.#failuresInRow = 0;
    this.#probing = false;
    this.cause = undefined;
  }

  failed(nowMs: number, cause?: unknown, sentAtMs = nowMs): void {
    this.#failuresInRow++;
    this.#probing = false;
    this.#lastInVainMs = nowMs;
    this.#failedSentMs = Math.max(this.#failedSentMs, sentAtMs);
    this.cause = cause;
    if (this.#failuresInRow === this.#options.failures) this.#nextProbeMs = nowMs + this.#options.intervalMs;
  }
}
