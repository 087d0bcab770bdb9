/** The store's calls for Prometheus; nothing for a store that makes none. */
import type { BreakerState, Limiter } from "sluice";
import { histogramSamples, type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

const breakerStates: Readonly<Record<BreakerState, number>> = { closed: 0, "half-open": 1, open: 2 };

export function storeMetrics(limiter: Limiter): ReadableMetric[] {
  const one = (value: number | undefined): Sample[] => (value === undefined ? [] : [{ value, labels: {} }]);
  const stats = (): ReturnType<Limiter["storeStats"]> => limiter.storeStats();
  return [
    readableMetric(
      { name: "sluice_store_calls_total", help: "Calls to the store; one may decide many requests.", type: "counter" },
      () => one(stats()?.calls),
    ),
    readableMetric(
      {
        name: "sluice_store_errors_total",
        help: "Calls to the store that got no answer in time, or an error.",
        type: "counter",
      },
      () => one(stats()?.errors),
    ),
    readableMetric(
      {
        name: "sluice_store_spared_calls_total",
        help: "Calls to the store that were not made because its breaker was open.",
        type: "counter",
      },
      () => one(stats()?.spared),
    ),
    readableMetric(
      {
        name: "sluice_store_breaker_state",
        help: "0: closed, calls pass. 1: half-open, one call is trying. 2: open, failure policies answer.",
        type: "gauge",
        aggregator: "max",
      },
      () => one(stats() && breakerStates[stats()!.breaker]),
    ),
    spreadMetric(
      { name: "sluice_store_call_seconds", help: "How long calls to the store took.", scale: 1 / 1_000 },
      () => stats()?.latencyMs,
    ),
    spreadMetric(
      { name: "sluice_store_batch_size", help: "Requests that shared a deciding call to the store.", scale: 1 },
      () => stats()?.batchSizes,
    ),
  ];
}

function spreadMetric(
  { name, help, scale }: { name: string; help: string; scale: number },
  read: () => { bounds: readonly number[]; counts: readonly number[]; sum: number } | undefined,
): ReadableMetric {
  return readableMetric({ name, help, type: "histogram" }, () => {
    const spread = read();
    return spread === undefined ? [] : histogramSamples({ name, scale, labels: {}, ...spread });
  });
}
