/**
 * Long work on the thread that also decides requests, done in short slices: between two of them, waiting checks are answered.
 * Small documents end within the first slice and never wait.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

/** A request that arrives during a slice waits for its end. */
const SLICE_MS = 2;

export class Pace {
  #restAtMs = performance.now() + SLICE_MS;

  /** Whether this slice is over: `if (pace.isDue()) await pace.rest()`. */
  isDue(): boolean {
    return performance.now() >= this.#restAtMs;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.#restAtMs = performance.now() + SLICE_MS;
  }
}
