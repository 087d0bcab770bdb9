/**
 * The part of a limit that one of several sharers admits on its own while the store that counts for all is away. Pure.
 */
import type { Policy } from "./policy.js";

/** A fraction of a limit, at least 1: an instance that may admit nothing would itself be an outage. */
export function sharePolicy(policy: Policy, share: number): Policy {
  if (policy.limit === 0) return policy;
  const limit = Math.max(1, Math.floor(policy.limit * share));
  if (!("capacity" in policy)) return { ...policy, limit };
  const capacity = Math.max(1, Math.floor(policy.capacity * share));
  // The rate shrinks with the share: the same amount over a longer time.
  return { ...policy, limit, capacity, scaleMs: Math.ceil(policy.scaleMs / Math.max(share, 1 / policy.limit)) };
}
