/** Metrics of prefetched units. None with the memory store, which is in this process already. */
import type { Limiter, PrefetchStats } from "sluice";
import { type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

export function prefetchMetrics(limiter: Pick<Limiter, "prefetchStats">): ReadableMetric[] {
  const read = (figureOf: (stats: PrefetchStats) => number) => (): Sample[] => {
    const stats = limiter.prefetchStats();
    return stats === undefined ? [] : [{ value: figureOf(stats), labels: {} }];
  };
  return [
    readableMetric(
      {
        name: "sluice_prefetch_decisions_total",
        help: "Requests that were decided in process, from units that were fetched ahead.",
        type: "counter",
      },
      read(({ decided }) => decided),
    ),
    readableMetric(
      {
        name: "sluice_prefetch_fetches_total",
        help: "Fetches of units, each beside a request or on its own.",
        type: "counter",
      },
      read(({ fetches }) => fetches),
    ),
    readableMetric(
      {
        name: "sluice_prefetch_units",
        help: "Units in hand now: fetched, not used, not given back.",
        type: "gauge",
      },
      read(({ units }) => units),
    ),
    readableMetric(
      {
        name: "sluice_prefetch_keys",
        help: "Keys with units in hand, or with uses that are not settled yet.",
        type: "gauge",
      },
      read(({ keys }) => keys),
    ),
  ];
}
