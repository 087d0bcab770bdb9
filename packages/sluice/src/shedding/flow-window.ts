/**
 * Measures requests over a time window: how many were in flight, how many ended, and by Little's law how long each took (in flight over
 * throughput). Little's law needs no latency of individual requests, so a request that outlasts the window does not bias it.
 *
 * A window opens once as many requests have ended as were in flight when it was requested: everything that an earlier limit admitted has
 * left by then, even if this process was paused meanwhile. Time is an argument; so is the lateness of the process.
 */

export class FlowWindow {
  readonly #lateness: () => number;
  #inFlight = 0;
  #changedAtMs = 0;
  #openedAtMs: number | undefined;
  #opensAtMs = 0;
  #leavers = 0;
  #ends = 0;
  #inFlightMs = 0;
  #longestGapMs = 0;
  #latenessAtOpening = 0;

  /** `lateness`: the integral over time of how late this process is (`loop-lateness.ts`). */
  constructor(lateness: () => number = () => 0) {
    this.#lateness = lateness;
  }

  /** Starts a new measurement, no sooner than `nowMs + waitMs`. */
  restart(nowMs: number, waitMs: number): void {
    this.#opensAtMs = nowMs + waitMs;
    this.#leavers = this.#inFlight;
    this.#openedAtMs = undefined;
  }

  /** Call before the number in flight changes; it has been `inFlight` until now. */
  changes(nowMs: number, inFlight: number): void {
    const sinceMs = nowMs - this.#changedAtMs;
    if (sinceMs > 0 && this.#openedAtMs !== undefined) {
      this.#inFlightMs += inFlight * sinceMs;
      this.#longestGapMs = Math.max(this.#longestGapMs, sinceMs);
    }
    this.#inFlight = inFlight;
    this.#changedAtMs = nowMs;
  }

  ended(nowMs: number): void {
    if (this.#openedAtMs !== undefined) {
      this.#ends++;
      return;
    }
    this.#leavers--;
    if (this.#leavers <= 0 && nowMs >= this.#opensAtMs) this.#open(nowMs);
  }

  #open(nowMs: number): void {
    this.#openedAtMs = nowMs;
    this.#ends = 0;
    this.#inFlightMs = 0;
    this.#longestGapMs = 0;
    this.#latenessAtOpening = this.#lateness();
  }

  /** 0 until it opens. */
  get ranMs(): number {
    return this.#openedAtMs === undefined ? 0 : this.#changedAtMs - this.#openedAtMs;
  }

  get ends(): number {
    return this.#openedAtMs === undefined ? 0 : this.#ends;
  }

  /** Mean. */
  get inFlight(): number {
    return this.#inFlightMs / this.ranMs;
  }

  /** Mean, by Little's law. */
  get latencyMs(): number {
    return this.#inFlightMs / this.#ends;
  }

  /** How long a request's end waited for this process, on average. */
  get latenessMs(): number {
    return (this.#lateness() - this.#latenessAtOpening) / this.ranMs;
  }

  /** The longest time in which no request arrived or ended: long if the process was paused. */
  get longestGapMs(): number {
    return this.#longestGapMs;
  }
}
