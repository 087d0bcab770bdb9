/**
 * A bound on frames that cost the server something and the peer nothing (resets, pings, settings, refused streams): a token bucket of its
 * own per connection, refilled by time and by calls that were decided. Work that a peer has asked for and waits for never empties it.
 */
const MOST = 2_000;
const PER_SECOND = 100;
const PER_CALL = 4;

export class FloodGuard {
  readonly #now: () => number;
  #tokens = MOST;
  #filledAtMonotonicMs: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#filledAtMonotonicMs = now();
  }

  /** False: this is a flood. */
  take(): boolean {
    if (this.#tokens < 1) this.#refill();
    this.#tokens--;
    return this.#tokens >= 0;
  }

  decided(): void {
    if (this.#tokens < MOST) this.#tokens += PER_CALL;
  }

  #refill(): void {
    const nowMonotonicMs = this.#now();
    const earned = ((nowMonotonicMs - this.#filledAtMonotonicMs) / 1_000) * PER_SECOND;
    this.#filledAtMonotonicMs = nowMonotonicMs;
    this.#tokens = Math.min(MOST, Math.max(0, this.#tokens) + earned);
  }
}
