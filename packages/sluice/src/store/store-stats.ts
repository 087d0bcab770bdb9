/**
 * Counts of a store's calls since its start, for metrics and the dashboard. Plain arrays: this is on the path of every call.
 */

/** A histogram: counts by inclusive upper bound; the last count is for values beyond all bounds. */
export interface Spread {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface StoreStats {
  /** Calls made: one call may decide many requests. */
  readonly calls: number;
  /** How many of these got an error, or no answer in time. */
  readonly errors: number;
  /** Calls skipped because the breaker was open. */
  readonly spared: number;
  readonly breaker: BreakerState;
  readonly latencyMs: Spread;
  /** How many requests shared a deciding call. */
  readonly batchSizes: Spread;
  /**
   * On a cluster: parts of refused requests whose undo did not succeed at once. `pending` are retried; `lost` were given up, and stay
   * charged until their windows end.
   */
  readonly undos: { readonly pending: number; readonly lost: number };
}

/** `half-open`: a probe is in flight to see whether the store answers again. */
export type BreakerState = "closed" | "open" | "half-open";

const LATENCY_BOUNDS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 50, 100, 250, 1000];
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128];

class SpreadCounts {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > this.#bounds[at]!) at++;
    this.#counts[at]!++;
    this.#sum += value;
  }

  read(): Spread {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum };
  }
}

export class CallCounts {
  calls = 0;
  errors = 0;
  spared = 0;
  readonly latencyMs = new SpreadCounts(LATENCY_BOUNDS_MS);
  readonly batchSizes = new SpreadCounts(BATCH_BOUNDS);

  read(breaker: BreakerState): Omit<StoreStats, "undos"> {
    const { calls, errors, spared, latencyMs, batchSizes } = this;
    return { calls, errors, spared, breaker, latencyMs: latencyMs.read(), batchSizes: batchSizes.read() };
  }
}
