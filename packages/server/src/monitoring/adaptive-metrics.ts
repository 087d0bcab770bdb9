/** Metrics of rules with `adapt`. The only label is the rule, never client data; the number of rules is bounded. */
import type { AdaptiveStats, Limiter } from "sluice";
import { type ReadableMetric, readableMetric, type Sample } from "./readable-metric.js";

const MOST_RULES = 100;

export function adaptiveMetrics(limiter: Pick<Limiter, "adaptiveStats">): ReadableMetric[] {
  const read = (samplesOf: (stats: AdaptiveStats) => readonly Sample[]) => (): Sample[] =>
    limiter.adaptiveStats().slice(0, MOST_RULES).flatMap(samplesOf);
  return [
    readableMetric(
      {
        name: "sluice_adaptive_limit",
        help: "The limit in force of a rule with adapt.",
        type: "gauge",
        aggregator: "max",
      },
      read(({ rule, limit }) => [{ value: limit, labels: { rule } }]),
    ),
    readableMetric(
      {
        name: "sluice_adaptive_utilisation",
        help: "Utilisation that a rule with adapt sees, the highest of its signals; absent where none is known.",
        type: "gauge",
        aggregator: "max",
      },
      read(({ rule, utilisation }) => (utilisation === undefined ? [] : [{ value: utilisation, labels: { rule } }])),
    ),
    readableMetric(
      {
        name: "sluice_adaptive_moves_total",
        help: "Moves of the limit of a rule with adapt that this instance saw, by direction (raised, lowered).",
        type: "counter",
        aggregator: "max",
      },
      read(({ rule, raised, lowered }) => [
        { value: raised, labels: { rule, direction: "raised" } },
        { value: lowered, labels: { rule, direction: "lowered" } },
      ]),
    ),
  ];
}
