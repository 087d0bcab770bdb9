/** A policy with another limit: everything else that scales with the limit (a bucket's capacity and rate) changes in proportion. Pure. */
import type { BucketPolicy, Policy } from "./policy.js";

/** Bounds the parts of a rate that must be rounded: leaves room below 2^53 for what is counted in its unit. */
const MOST_ROUNDED = 2 ** 40;

/** `share`: fraction of the policy's own limit. At least 1 is left. */
export function scalePolicy(policy: Policy, share: number): Policy {
  if (policy.limit === 0 || share === 1) return policy;
  const limit = scaled(policy.limit, share);
  if (!("capacity" in policy)) return { ...policy, limit };
  return { ...policy, limit, capacity: scaled(policy.capacity, share), ...scaledRate(policy, limit) };
}

/**
 * `amount / scaleMs` times `limit / policy.limit`, as a reduced fraction. The parts are reduced against their divisors before they are
 * multiplied, because products of limits beyond 2^26 are no longer exact integers.
 */
function scaledRate(policy: BucketPolicy, limit: number): Pick<BucketPolicy, "amount" | "scaleMs"> {
  const [byLimit, fromLimit] = reduced(limit, policy.limit);
  const [amount, ofLimit] = reduced(policy.amount, fromLimit);
  const [times, scaleMs] = reduced(byLimit, policy.scaleMs);
  if (Number.isSafeInteger(amount * times) && Number.isSafeInteger(scaleMs * ofLimit))
    return { amount: amount * times, scaleMs: scaleMs * ofLimit };
  // An explicit refill rate, and limits that share no divisor with it: rounded, in a finer unit.
  const finer = 2 ** Math.max(0, Math.floor(Math.log2(MOST_ROUNDED / Math.max(policy.amount, policy.scaleMs))));
  return { amount: scaled(policy.amount * finer, limit / policy.limit), scaleMs: policy.scaleMs * finer };
}

function reduced(a: number, b: number): readonly [number, number] {
  const divisor = greatestCommonDivisor(a, b);
  return [a / divisor, b / divisor];
}

function scaled(units: number, share: number): number {
  return Math.max(1, Math.round(units * share));
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
