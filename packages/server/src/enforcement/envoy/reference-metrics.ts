/**
 * Counts hits under envoyproxy/ratelimit's metric names (`--envoy-metrics`), so that its dashboards and alerts keep working.
 * In: the outcome of each descriptor. Out: counters with the labels of its Prometheus sink: domain, key1 and, from the second level on,
 * key2.
 *
 * Client values become labels only if a file asks for it (`detailed_metric`, `value_to_metric`), and for limits carried by requests. The
 * cardinality of those series is bounded; the excess is counted under `(other)`. Other series are bounded by the number of configured
 * limits.
 */
import type { Decision } from "sluice";
import type { ReadableCounter, Sample } from "../../monitoring/readable-metric.js";
import { type MetricKey, overrideMetricKey } from "./metric-key.js";
import type { Asked } from "./should-rate-limit.js";

/** Label sets with client values; each has at most five series. */
export const MOST_CLIENT_LABEL_SETS = 2_000;
const LONGEST_LABEL = 200;

const stats = {
  total_hits: "Hits that were asked for.",
  within_limit: "Hits of requests whose limit was not passed.",
  over_limit: "Hits past the limit.",
  near_limit: "Hits past the limit's near share (--envoy-near-limit-ratio), up to the limit.",
  shadow_mode: "Hits past a limit in shadow mode, which were let through.",
} as const;
type Stat = keyof typeof stats;
const statNames = Object.keys(stats) as Stat[];

const events = {
  total_requests: "Calls of ShouldRateLimit, by gRPC and by /json.",
  should_rate_limit_error:
    "Calls that ended with an error: of the store (redis_error), of the caller or of Sluice (service_error).",
  config_load_success: "Limits that were read or received.",
  config_load_error: "Limits that were refused; those in force stay.",
  global_shadow_mode: "Requests that --envoy-shadow-mode let through.",
} as const;
type ReferenceEvent = keyof typeof events | "redis_error" | "service_error";

type Labels = Readonly<Record<string, string>>;
type Counts = Record<Stat, number> & { readonly labels: Labels };

interface ReferenceMetricsOptions {
  readonly nearLimitRatio: number;
  readonly mostClientLabelSets?: number;
}

export class ReferenceMetrics {
  readonly #counts = new Map<string, Counts>();
  readonly #nearLimitRatio: number;
  readonly #most: number;
  #clientLabelSets = 0;
  readonly #events = new Map<ReferenceEvent, number>();

  constructor({ nearLimitRatio, mostClientLabelSets = MOST_CLIENT_LABEL_SETS }: ReferenceMetricsOptions) {
    this.#nearLimitRatio = Math.fround(nearLimitRatio);
    this.#most = mostClientLabelSets;
  }

  /** `isCounted`: whether refused hits were counted anyway. */
  add(one: Asked, made: { domain: string; decision: Decision; isCounted: boolean }): void {
    const { limit, check, hits, descriptor } = one;
    if (limit === undefined || check === undefined || descriptor.isNegativeHits) return;
    const { domain, decision, isCounted } = made;
    const isPlaced = limit.kind === "placed";
    const key = isPlaced ? limit.metricKey() : overrideMetricKey(domain, descriptor.entries);
    const counts = this.#countsOf(key);
    const most = isPlaced ? limit.placed.limit.requestsPerUnit : limit.override.requestsPerUnit;
    const used = check.limit - check.remaining + (check.debt ?? 0);
    const wasCounted = isCounted || (check.allowed && decision.allowed);
    const before = wasCounted ? used - hits : used;
    counts.total_hits += hits;
    if (check.allowed) {
      counts.within_limit += hits;
      counts.near_limit += this.#near(most, before, before + hits);
      return;
    }
    // Hits that were refused together, and not counted, are all over the limit.
    const isSplit = wasCounted && before < most;
    const over = isSplit ? used - most : hits;
    counts.over_limit += over;
    if (isSplit) counts.near_limit += this.#near(most, before, most);
    if (isPlaced && limit.placed.shadow) counts.shadow_mode += over;
  }

  /** Counts one call, reload or error. */
  note(event: Exclude<ReferenceEvent, "should_rate_limit_error">): void {
    this.#events.set(event, (this.#events.get(event) ?? 0) + 1);
  }

  metrics(): ReadableCounter[] {
    return [...this.#hitMetrics(), ...this.#eventMetrics()];
  }

  #eventMetrics(): ReadableCounter[] {
    const labelled: Readonly<Record<string, [ReferenceEvent, Labels][]>> = {
      total_requests: [["total_requests", { grpc_method: "ShouldRateLimit" }]],
      should_rate_limit_error: [
        ["redis_error", { err_type: "redis_error" }],
        ["service_error", { err_type: "service_error" }],
      ],
    };
    return Object.entries(events).map(([name, help]) => ({
      name: `ratelimit_service_${name}`,
      help,
      read: () =>
        (labelled[name] ?? [[name as ReferenceEvent, {}]]).flatMap(([event, labels]): Sample[] => {
          const value = this.#events.get(event);
          return value === undefined ? [] : [{ value, labels }];
        }),
    }));
  }

  #hitMetrics(): ReadableCounter[] {
    return statNames.map((stat) => ({
      name: `ratelimit_service_rate_limit_${stat}`,
      help: stats[stat],
      // Like the reference, export a counter only from its first hit on.
      read: () =>
        Array.from(this.#counts.values()).flatMap((counts): Sample[] =>
          counts[stat] > 0 ? [{ value: counts[stat], labels: counts.labels }] : [],
        ),
    }));
  }

  /** How many of the hits from `before` to `after` are beyond the near-limit threshold. In 32-bit floats, as the reference computes it. */
  #near(most: number, before: number, after: number): number {
    const threshold = Math.floor(Math.fround(Math.fround(most) * this.#nearLimitRatio));
    return Math.max(0, after - Math.max(threshold, before));
  }

  #countsOf({ text, fromClient }: MetricKey): Counts {
    const labels = labelsOf(text);
    const name = Object.values(labels).join(".");
    const known = this.#counts.get(name);
    if (known !== undefined) return known;
    if (fromClient) {
      const isTooMuch =
        this.#clientLabelSets >= this.#most || Object.values(labels).some(({ length }) => length > LONGEST_LABEL);
      if (isTooMuch) return this.#other(labels.domain!);
      this.#clientLabelSets++;
    }
    return this.#make(name, labels);
  }

  /** Bounded per domain, and domains come from the files. */
  #other(domain: string): Counts {
    const name = `${domain}.(other)`;
    return this.#counts.get(name) ?? this.#make(name, { domain, key1: "(other)" });
  }

  #make(name: string, labels: Labels): Counts {
    const made: Counts = { labels, total_hits: 0, within_limit: 0, over_limit: 0, near_limit: 0, shadow_mode: 0 };
    this.#counts.set(name, made);
    return made;
  }
}

/**
 * Splits a name at its dots as the reference's statsd mapping does: levels past the second are summed. Colons and dots of IPv4 addresses do
 * not split.
 */
function labelsOf(text: string): Labels {
  const plain = text
    .replaceAll(/[:|]/g, "_")
    .replaceAll(/\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}/g, (address) => address.replaceAll(".", "_"));
  const [domain = "", key1 = "", key2] = plain.split(".", 3);
  return { domain, key1, ...(key2 !== undefined && { key2 }) };
}
