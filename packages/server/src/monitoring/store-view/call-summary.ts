/** The store's calls in four figures, from the counts that the store keeps. Pure. */
import type { StoreStats } from "sluice";
import { latencyOf } from "../latency-buckets.js";
import type { StoreView } from "../views/store.js";

/** A store that makes no calls has none that fail. */
export function callSummary(stats: StoreStats | undefined): StoreView["calls"] {
  if (stats === undefined) return { total: 0, errors: 0, latency: { p50Ms: 0, p95Ms: 0, p99Ms: 0 }, breaker: "closed" };
  const { calls: total, errors, latencyMs, breaker } = stats;
  return { total, errors, latency: latencyOf(latencyMs.counts, latencyMs.bounds), breaker };
}
