/** A policy with another limit: what else grows with the limit (a bucket's capacity and rate) grows in proportion. Pure. */
import type { Policy } from "./policy.js";

/** `share`: of the policy's own limit. At least 1 is left. */
export function scalePolicy(policy: Policy, share: number): Policy {
  if (policy.limit === 0 || share === 1) return policy;
  const limit = scaled(policy.limit, share);
  if (!("capacity" in policy)) return { ...policy, limit };
  const divisor = greatestCommonDivisor(policy.amount * limit, policy.scaleMs * policy.limit);
  return {
    ...policy,
    limit,
    capacity: scaled(policy.capacity, share),
    amount: (policy.amount * limit) / divisor,
    scaleMs: (policy.scaleMs * policy.limit) / divisor,
  };
}

function scaled(units: number, share: number): number {
  return Math.max(1, Math.round(units * share));
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
