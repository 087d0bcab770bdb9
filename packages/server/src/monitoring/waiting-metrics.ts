/** Metrics of requests waiting for a turn. The only label is the rule, never client data; the number of rules is bounded. */
import type { Limiter } from "sluice";
import { type ReadableMetric, readableMetric } from "./readable-metric.js";

const MOST_RULES = 100;

export function waitingMetrics(limiter: Pick<Limiter, "waitingStats">): ReadableMetric[] {
  return [
    readableMetric(
      {
        name: "sluice_waiting_requests",
        help: "Requests that wait in this process for a turn (maxWait), by rule.",
        type: "gauge",
      },
      () =>
        [...limiter.waitingStats()]
          .slice(0, MOST_RULES)
          .map(([rule, waiting]) => ({ value: waiting, labels: { rule } })),
    ),
  ];
}
