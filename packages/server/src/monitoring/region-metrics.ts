/** Metrics of a region's fetches from the global store. None without one. */
import type { Limiter, RegionStats } from "sluice";
import { type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

interface Told {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** How the workers of an instance are combined; default: summed. */
  readonly aggregator?: "max";
  readonly figureOf: (stats: RegionStats) => number;
}

const told: readonly Told[] = [
  {
    name: "sluice_region_requests_total",
    help: "Requests under a rule with scope global.",
    type: "counter",
    figureOf: ({ requests }) => requests,
  },
  {
    name: "sluice_region_waited_total",
    help: "Of these, requests that waited for units from the global store.",
    type: "counter",
    figureOf: ({ waited }) => waited,
  },
  {
    name: "sluice_region_cut_off_requests_total",
    help: "Of these, requests that a failure policy answered because the global store was away and the region held no units.",
    type: "counter",
    figureOf: ({ cutOffRequests }) => cutOffRequests,
  },
  {
    name: "sluice_region_fetches_total",
    help: "Fetches of units from the global store, by this instance for its region.",
    type: "counter",
    figureOf: ({ fetches }) => fetches,
  },
  {
    name: "sluice_region_failed_fetches_total",
    help: "Of these, fetches without an answer.",
    type: "counter",
    figureOf: ({ failedFetches }) => failedFetches,
  },
  {
    name: "sluice_region_units",
    help: "Units in the region's pools that this instance filled last: at most, for others use them too.",
    type: "gauge",
    figureOf: ({ units }) => units,
  },
  {
    name: "sluice_region_pools",
    help: "How many pools these are.",
    type: "gauge",
    figureOf: ({ pools }) => pools,
  },
  {
    name: "sluice_region_round_trip_seconds",
    help: "How long the last fetch from the global store, or heartbeat, took.",
    type: "gauge",
    aggregator: "max",
    figureOf: ({ roundTripMs }) => roundTripMs / 1_000,
  },
  {
    name: "sluice_region_cut_off",
    help: "1 while the global store did not answer the last fetch, else 0.",
    type: "gauge",
    aggregator: "max",
    figureOf: ({ isCutOff }) => (isCutOff ? 1 : 0),
  },
  {
    name: "sluice_region_cut_off_seconds",
    help: "For how long that has been so; 0 while it is not.",
    type: "gauge",
    aggregator: "max",
    figureOf: ({ cutOffSinceMs }) =>
      cutOffSinceMs === undefined ? 0 : Math.max(0, Date.now() - cutOffSinceMs) / 1_000,
  },
  {
    name: "sluice_region_regions",
    help: "Regions that share the global store, by their heartbeat; 0 before it was reached.",
    type: "gauge",
    aggregator: "max",
    figureOf: ({ regions }) => regions,
  },
];

export function regionMetrics(limiter: Pick<Limiter, "regionStats">): ReadableMetric[] {
  return told.map(({ figureOf, ...metric }) =>
    readableMetric(metric, (): Sample[] => {
      const stats = limiter.regionStats();
      return stats === undefined ? [] : [{ value: figureOf(stats), labels: { region: stats.region } }];
    }),
  );
}
