/** A rule's numbers in a few words: "100 in 1m". Pure. */
import type { Rule } from "../api/shapes.js";
import { withUnit } from "../components/format.js";

type Numbers = Partial<Pick<Rule, "algorithm" | "limit">> & {
  readonly window?: string;
  readonly refill?: { readonly amount: number; readonly every: string };
  readonly burst?: number;
  readonly minInterval?: string;
  readonly ttl?: string;
  readonly prefetch?: string;
  readonly signal?: string | readonly string[];
  readonly unit?: string;
};

export function describeNumbers(rule: Numbers): string {
  if (rule.algorithm === "load-shedding") {
    const places =
      rule.limit === undefined ? "" : `, ${rule.limit === "auto" ? "places estimated" : `${rule.limit} places`}`;
    return `sheds by ${[rule.signal ?? []].flat().join(" and ")}${places}`;
  }
  const { algorithm, limit, window, refill, burst, minInterval, ttl, prefetch, unit } = rule;
  if (algorithm === "concurrency") return `${limit} at once${ttl === undefined ? "" : `, for ${ttl} at most`}`;
  const pace =
    refill === undefined
      ? window === undefined
        ? ""
        : ` in ${window}`
      : `, ${refill.amount} more every ${refill.every}`;
  const extras = [
    burst === undefined ? "" : `, ${burst} at once`,
    minInterval === undefined ? "" : `, ${minInterval} apart`,
    prefetch === undefined ? "" : `, fetched ${prefetch} ahead`,
  ];
  // A number without a unit stays as written.
  const numbers = limit === undefined || unit === undefined ? `${limit ?? ""}` : withUnit(Number(limit), unit);
  return `${numbers}${pace}${extras.join("")}`;
}
