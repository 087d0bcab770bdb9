/** The latency buckets, for metrics and history, and the quantiles computed from them. Pure. */
import type { Counted } from "./history/history.js";
import type { Latency } from "./views/stats.js";

/** In ms: from 50 µs, typical of a memory store, to beyond any store deadline. Changing the list requires new names in the history. */
export const LATENCY_BOUNDS_MS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 50, 100, 250, 1000] as const;
/** The last bucket counts values beyond all bounds. */
export const LATENCY_BUCKETS = LATENCY_BOUNDS_MS.length + 1;

export const latencyNames: readonly Counted[] = Array.from(
  { length: LATENCY_BUCKETS },
  (_, i): Counted => `latency${String(i).padStart(2, "0")}` as Counted,
);

export function bucketOf(tookMs: number): number {
  let bucket = 0;
  while (bucket < LATENCY_BOUNDS_MS.length && tookMs > LATENCY_BOUNDS_MS[bucket]!) bucket++;
  return bucket;
}

/** Interpolates linearly within a bucket; values beyond the last bound count as that bound. 0 without requests. */
export function latencyOf(buckets: ArrayLike<number>, bounds: readonly number[] = LATENCY_BOUNDS_MS): Latency {
  return {
    p50Ms: quantile(buckets, bounds, 0.5),
    p95Ms: quantile(buckets, bounds, 0.95),
    p99Ms: quantile(buckets, bounds, 0.99),
  };
}

function quantile(buckets: ArrayLike<number>, bounds: readonly number[], share: number): number {
  let total = 0;
  for (let i = 0; i < buckets.length; i++) total += buckets[i]!;
  if (total === 0) return 0;
  let left = share * total;
  for (let i = 0; i < bounds.length; i++) {
    const count = buckets[i]!;
    if (left <= count) {
      const lower = i === 0 ? 0 : bounds[i - 1]!;
      const exact = lower + ((bounds[i]! - lower) * left) / count;
      return Math.round(exact * 1_000) / 1_000;
    }
    left -= count;
  }
  return bounds.at(-1)!;
}
