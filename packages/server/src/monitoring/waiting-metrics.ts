/** The metric of requests that wait for a turn. Its label is the rule, never clients' data: of very many rules the first are shown. */
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
