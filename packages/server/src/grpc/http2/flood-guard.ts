/**
 * Bounds frames that cost the server work and the peer nothing (RST_STREAM, PING, SETTINGS, unsolicited acks, empty DATA, tiny
 * WINDOW_UPDATEs, unknown frames, frames for closed streams): a token bucket per connection, refilled over time and by answered calls. A
 * peer that waits for the answers to its calls never empties it.
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

  /** False if the bucket is empty: this is a flood. */
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
