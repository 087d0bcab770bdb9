/** Summarises the store's calls from its own counts. Pure. */
import type { StoreStats } from "sluice";
import { latencyOf } from "../latency-buckets.js";
import type { StoreView } from "../views/store.js";

/** A store without remote calls has no failing ones. */
export function callSummary(stats: StoreStats | undefined): StoreView["calls"] {
  if (stats === undefined) return { total: 0, errors: 0, latency: { p50Ms: 0, p95Ms: 0, p99Ms: 0 }, breaker: "closed" };
  const { calls: total, errors, latencyMs, breaker } = stats;
  return { total, errors, latency: latencyOf(latencyMs.counts, latencyMs.bounds), breaker };
}
