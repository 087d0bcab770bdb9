/**
 * The name that envoyproxy/ratelimit counts a descriptor's hits under: the domain and each level, with its value as the file writes it, as
 * the client sent it (`detailed_metric`, `value_to_metric`), or none. Pure.
 */
import type { Entry } from "./limit-tree.js";

export interface MetricKey {
  readonly text: string;
  /** Whether it holds values that the files do not: then there may be any number of them. */
  readonly fromClient: boolean;
}

/** The facts about a matched level that the name needs. */
export interface MetLevel {
  /** As the file writes it; "" for a bare key. */
  readonly value: string;
  readonly sharesThreshold: boolean;
  readonly valueToMetric: boolean;
}

export function metricKey(made: {
  domain: string;
  entries: readonly Entry[];
  /** One for each entry. */
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
    // Without a shared level the reference writes the underscore of an empty value, too.
    return detailed && !anyShared ? `${entry.key}_${entry.value}` : spelled(entry.key, entry.value);
  });
  return { text: [domain, ...levels].join("."), fromClient };
}

/** Of a limit that a request brings. */
export function overrideMetricKey(domain: string, entries: readonly Entry[]): MetricKey {
  return { text: `${domain}.${entries.map(({ key, value }) => spelled(key, value)).join(".")}`, fromClient: true };
}

function spelled(key: string, value: string): string {
  return value === "" ? key : `${key}_${value}`;
}
