/** Metrics of load shedding. Labels are rules and their classes, never client data; the number of rules is bounded. */
import type { Limiter, SheddingStats } from "sluice";
import { type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

const MOST_RULES = 100;

export function sheddingMetrics(limiter: Pick<Limiter, "sheddingStats">): ReadableMetric[] {
  const read = (samplesOf: (stats: SheddingStats) => readonly Sample[]) => (): Sample[] =>
    limiter.sheddingStats().slice(0, MOST_RULES).flatMap(samplesOf);
  return [
    readableMetric(
      {
        name: "sluice_load_utilisation",
        help: "Utilisation that a load-shedding rule sees, the highest of its signals; of its busiest gauge.",
        type: "gauge",
        aggregator: "max",
      },
      read(({ rule, utilisation }) => [{ value: utilisation, labels: { rule } }]),
    ),
    readableMetric(
      {
        name: "sluice_load_in_flight",
        help: "Requests in flight that a load-shedding rule counts.",
        type: "gauge",
      },
      read(({ rule, limit, inFlight }) => (limit === undefined ? [] : [{ value: inFlight, labels: { rule } }])),
    ),
    readableMetric(
      {
        name: "sluice_load_limit",
        help: "Places for requests in flight under a load-shedding rule, given or estimated (auto).",
        type: "gauge",
      },
      read(({ rule, limit }) => (limit === undefined ? [] : [{ value: limit, labels: { rule } }])),
    ),
    readableMetric(
      {
        name: "sluice_load_requests_total",
        help: "Requests that a load-shedding rule judged, by class and outcome (passed, shed).",
        type: "counter",
      },
      read(({ rule, classes }) =>
        classes.flatMap(({ name, passed, shed }) => [
          { value: passed, labels: { rule, class: name, outcome: "passed" } },
          { value: shed, labels: { rule, class: name, outcome: "shed" } },
        ]),
      ),
    ),
  ];
}
