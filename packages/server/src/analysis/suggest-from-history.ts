/**
 * Suggests a limit for a rule in force from the service's top keys: the highest share of the limit that each had in use.
 * In: the rule's limit, its top keys of a day. Out: limits with headroom, and a candidate to try.
 *
 * Less exact than a log or a recording, and labelled as such: only the busiest keys are known, so quantiles are of these, and a key that
 * was refused may have wanted any amount above the limit. Pure.
 */
import type { TopKey } from "../monitoring/views/keys.js";

export interface HistorySuggestion {
  readonly rule: string;
  /** The limit in force. */
  readonly limit: number;
  readonly window?: string | number | undefined;
  /** The busiest keys; others are not stored. */
  readonly keys: number;
  /** Keys that were refused: they may have wanted more than the limit. */
  readonly keysRefused: number;
  /** Over these keys: the most units in use at once. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly limits: readonly { readonly from: "p99" | "max"; readonly limit: number; readonly keysTouched: number }[];
  /** Absent if keys were refused: their real demand is unknown. */
  readonly candidate?: { readonly limit: number };
}

interface HistoryOptions {
  readonly rule: { readonly id: string; readonly limit: number; readonly window?: string | number | undefined };
  readonly keys: readonly TopKey[];
  readonly headroom: number;
}

export function suggestFromHistory({ rule, keys, headroom }: HistoryOptions): HistorySuggestion {
  const { id, limit, window } = rule;
  const used = keys.map(({ peakUtilisation }) => Math.ceil(peakUtilisation * limit - 1e-9)).sort((a, b) => a - b);
  const quantile = (share: number): number => used[Math.max(0, Math.ceil(share * used.length) - 1)] ?? 0;
  const suggested = (from: "p99" | "max", value: number) => {
    const number = Math.max(1, Math.ceil(value * headroom));
    return { from, limit: number, keysTouched: used.filter((one) => one > number).length };
  };
  const max = used.at(-1) ?? 0;
  const keysRefused = keys.filter(({ refused }) => refused > 0).length;
  const limits = used.length === 0 ? [] : [suggested("p99", quantile(0.99)), suggested("max", max)];
  return {
    rule: id,
    limit,
    ...(window !== undefined && { window }),
    keys: used.length,
    keysRefused,
    p50: quantile(0.5),
    p99: quantile(0.99),
    max,
    limits,
    ...(keysRefused === 0 && limits[1] !== undefined && { candidate: { limit: limits[1].limit } }),
  };
}
