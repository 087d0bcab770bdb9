/** The store's calls in four figures, from the counts that the store keeps. Pure. */
import type { Spread, StoreStats } from "sluice";
import type { StoreView } from "../views.js";

/** A store that makes no calls has none that fail. */
export function callSummary(stats: StoreStats | undefined): StoreView["calls"] {
  if (stats === undefined) return { total: 0, errors: 0, latency: { p50Ms: 0, p99Ms: 0 }, breaker: "closed" };
  const { calls: total, errors, latencyMs, breaker } = stats;
  return { total, errors, latency: { p50Ms: quantile(latencyMs, 0.5), p99Ms: quantile(latencyMs, 0.99) }, breaker };
}

/** The upper bound of the step that holds the quantile; beyond the last bound, that bound. */
function quantile({ bounds, counts }: Spread, share: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (let i = 0; i < bounds.length; i++) {
    seen += counts[i]!;
    if (total > 0 && seen >= share * total) return bounds[i]!;
  }
  return total === 0 ? 0 : bounds.at(-1)!;
}
