/** Store metrics: calls, for a remote store; memory, for one in this process. */
import type { BreakerState, Limiter, MemoryUse } from "sluice";
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
    readableMetric(
      {
        name: "sluice_store_undos_pending",
        help: "On a cluster: charges of refused requests whose undo did not arrive yet and is tried again.",
        type: "gauge",
      },
      () => one(stats()?.undos.pending),
    ),
    readableMetric(
      {
        name: "sluice_store_undos_lost_total",
        help: "On a cluster: charges of refused requests that could not be undone; they end with their windows.",
        type: "counter",
      },
      () => one(stats()?.undos.lost),
    ),
    spreadMetric(
      { name: "sluice_store_call_seconds", help: "How long calls to the store took.", scale: 1 / 1_000 },
      () => stats()?.latencyMs,
    ),
    spreadMetric(
      { name: "sluice_store_batch_size", help: "Requests that shared a deciding call to the store.", scale: 1 },
      () => stats()?.batchSizes,
    ),
    ...memoryMetrics(limiter),
  ];
}

function memoryMetrics(limiter: Limiter): ReadableMetric[] {
  const gauge = (name: string, help: string, read: (use: MemoryUse) => number): ReadableMetric =>
    readableMetric({ name, help, type: "gauge" }, () => {
      const use = limiter.memoryUse();
      return use === undefined ? [] : [{ value: read(use), labels: {} }];
    });
  return [
    gauge("sluice_memory_store_bytes", "Bytes of counters and request ids, estimated.", ({ bytes }) => bytes),
    gauge("sluice_memory_store_limit_bytes", "The limit of those bytes (--memory-limit).", ({ maxBytes }) => maxBytes),
    readableMetric(
      {
        name: "sluice_memory_store_evictions_total",
        help: "Counters (idle, used-up) and request ids (id) that were forgotten before their end, for lack of room.",
        type: "counter",
      },
      () => {
        const evicted = limiter.memoryUse()?.evicted;
        if (evicted === undefined) return [];
        return [
          { value: evicted.idle, labels: { kind: "idle" } },
          { value: evicted.usedUp, labels: { kind: "used-up" } },
          { value: evicted.ids, labels: { kind: "id" } },
        ];
      },
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
