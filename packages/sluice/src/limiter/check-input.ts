/**
 * Validates what a caller passes to a check besides attributes and cost (the rule book validates those). Pure.
 */
import { LONGEST_WAIT_MS } from "../algorithms/model.js";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { Check } from "../check.js";
import { SluiceError } from "../errors.js";
import { MOST_NAMED } from "../keys.js";
import { describeValue } from "../rules/describe-value.js";
import { MOST_PLACES } from "./lease-id.js";

const LONGEST_REQUEST_ID = 1_024;

/** A cost above the limit passes here: the decision refuses it anyway. */
export function placesFit({ cost, plan }: Check): true {
  if (cost <= MOST_PLACES || cost > plan.policy.limit) return true;
  throw new SluiceError(
    "invalid-request",
    `cost: expected at most ${MOST_PLACES} under a concurrency rule, got ${cost}`,
  );
}

/** The same for a rolling window stored as a sorted set. A charge above the limit is stored as one number. */
export function entriesFit({ cost, plan, charge }: Check): true {
  if (cost <= MOST_ENTRIES || cost > plan.policy.limit || charge === true) return true;
  throw new SluiceError(
    "invalid-request",
    `cost: expected at most ${MOST_ENTRIES} under a rolling window with storage: sorted-set, got ${cost}; storage: packed takes any`,
  );
}

/** A lease or reservation over more rules could never be ended: no id can name them all. */
export function namesFit(rules: number, kind: "concurrency rules" | "rules with an estimate"): void {
  if (rules <= MOST_NAMED) return;
  throw new SluiceError(
    "too-complex",
    `rules: expected at most ${MOST_NAMED} ${kind} that apply to one request, got ${rules}`,
  );
}

export function checkedId(id: unknown): string {
  if (typeof id === "string" && id.length > 0 && id.length <= LONGEST_REQUEST_ID) return id;
  throw new SluiceError(
    "invalid-request",
    `id: expected a string of 1 to ${LONGEST_REQUEST_ID} characters, got ${describe(id)}`,
  );
}

/** The options of a call. A number in their place, where other limiters take the cost, would be ignored: the request would cost 1. */
export function checkedOptions<T extends object>(options: T, example = "{ cost: 2 }"): T {
  if (typeof options === "object" && options !== null) return options;
  throw new SluiceError(
    "invalid-request",
    `options: expected an object such as ${example}, got ${describeValue(options)}`,
  );
}

export function checkedParts<T>(parts: readonly T[]): readonly T[] {
  if (Array.isArray(parts)) return parts;
  throw new SluiceError(
    "invalid-request",
    `parts: expected a list of { attributes, cost }, got ${describeValue(parts)}`,
  );
}

export function checkedBlockLength(lengthMs: unknown): number {
  if (Number.isSafeInteger(lengthMs) && (lengthMs as number) > 0 && (lengthMs as number) <= LONGEST_WAIT_MS)
    return lengthMs as number;
  throw new SluiceError(
    "invalid-request",
    `length: expected whole milliseconds from 1 to ${LONGEST_WAIT_MS}, got ${describe(lengthMs)}`,
  );
}

function describe(value: unknown): string {
  return typeof value === "string" ? `one of ${value.length}` : describeValue(value);
}
