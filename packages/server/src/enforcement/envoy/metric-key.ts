/**
 * The name under which envoyproxy/ratelimit counts a descriptor's hits: the domain and each level, with its value from the file, from the
 * client (`detailed_metric`, `value_to_metric`), or none. Pure.
 */
import type { Entry } from "./limit-tree.js";

export interface MetricKey {
  readonly text: string;
  /** Whether it contains client-controlled values, so that its cardinality is unbounded. */
  readonly fromClient: boolean;
}

/** The properties of a matched level that the name depends on. */
export interface MetLevel {
  /** From the file; "" for a bare key. */
  readonly value: string;
  readonly sharesThreshold: boolean;
  readonly valueToMetric: boolean;
}

export function metricKey(made: {
  domain: string;
  entries: readonly Entry[];
  /** One per entry. */
  met: readonly MetLevel[];
  /** `detailed_metric` of the limit's own level. */
  detailed: boolean;
}): MetricKey {
  const { domain, entries, met, detailed } = made;
  const anyShared = met.some(({ sharesThreshold }) => sharesThreshold);
  let fromClient = false;
  const levels = entries.map((entry, i) => {
    const { value, sharesThreshold, valueToMetric } = met[i]!;
    if (sharesThreshold || !(detailed || valueToMetric)) return spelled(entry.key, value);
    fromClient ||= entry.value !== value;
    // Unless a level is shared, the reference writes the underscore even for an empty value.
    return detailed && !anyShared ? `${entry.key}_${entry.value}` : spelled(entry.key, entry.value);
  });
  return { text: [domain, ...levels].join("."), fromClient };
}

/** For a limit that a request carries. */
export function overrideMetricKey(domain: string, entries: readonly Entry[]): MetricKey {
  return { text: `${domain}.${entries.map(({ key, value }) => spelled(key, value)).join(".")}`, fromClient: true };
}

function spelled(key: string, value: string): string {
  return value === "" ? key : `${key}_${value}`;
}
