/**
 * Turns a rule's `estimate`, as written by people, into what checks carry: durations in ms, defaults filled in, the class of the keys. In:
 * a validated rule. Pure.
 */
import { createHash } from "node:crypto";
import type { PlannedEstimate } from "../check.js";
import { parseDuration } from "./duration.js";
import type { CountingRule, Override } from "./rule.js";

const DEFAULT_TTL = "5m";
/** Overrides with learned costs of their own; the keys of further overrides are learned together with the rule's. */
const MOST_CLASSES = 64;

/** `rule` must have an estimate. */
export function estimateUnder(rule: CountingRule, override: Override | undefined): PlannedEstimate {
  const { quantile, default: whenUnknown, ttl = DEFAULT_TTL, overrun = "finish" } = rule.estimate!;
  return {
    // Validation ensures both.
    cost: (rule.cost as { attribute: string }).attribute,
    ttlMs: parseDuration(ttl)!,
    quantile,
    default: whenUnknown,
    finishes: overrun === "finish",
    keyClass: override === undefined ? "" : classOf(rule, override),
  };
}

/** Named after what the override matches, because its index changes when another one is inserted before it. */
function classOf({ overrides }: CountingRule, override: Override): string {
  if (!overrides!.slice(0, MOST_CLASSES).includes(override)) return "";
  return createHash("sha256").update(JSON.stringify(override.match)).digest("base64url").slice(0, 8);
}
