/**
 * Releases concurrency places for Envoy by their lease, and gives hits back (`is_negative_hits`) to limits that allow it.
 *
 * A response that holds places carries their lease as dynamic metadata; Envoy sends it back in a descriptor when the stream is done. So
 * only an admitted stream can release, once, what it holds, because only its client knows the lease.
 * Negative hits identify neither stream nor charge: any client of the port could empty a counter with them. They are honoured only for
 * limits that opt in, give back at most what the counter holds, and never apply to Sluice's own rules.
 */
import { type CheckPart, type Lease, type Limiter, SluiceError } from "sluice";
import type { RateLimitDescriptor, RateLimitRequest } from "./rate-limit-messages.js";
import type { Asked } from "./should-rate-limit.js";

/** The key of the descriptor entry that carries a lease; also its name in a response's metadata. */
export const LEASE_ENTRY = "sluice_lease";

/**
 * `unknown`: the lease was released before, has expired, or never existed. `ignored`: negative hits on a limit that does not accept them.
 * `abandoned`: Envoy disconnected before it received the lease.
 */
export type GivenBackOutcome = "released" | "unknown" | "given-back" | "ignored" | "abandoned";

interface GiveBackOptions {
  readonly limiter: Limiter;
  readonly onGivenBack: (outcome: GivenBackOutcome) => void;
}

export function leaseOf({ entries }: RateLimitDescriptor): string | undefined {
  return entries.find(({ key }) => key === LEASE_ENTRY)?.value;
}

/** Frees the places of a call whose client has gone: nobody else knows the lease. */
export function abandon(lease: Lease, { onGivenBack }: Pick<GiveBackOptions, "onGivenBack">): void {
  onGivenBack("abandoned");
  void lease.release().catch(() => undefined);
}

/** Releases the leases that the request carries. */
export async function releaseLeases(
  { descriptors }: RateLimitRequest,
  { limiter, onGivenBack }: GiveBackOptions,
): Promise<string[]> {
  const leases = descriptors.flatMap((descriptor) => leaseOf(descriptor) ?? []);
  for (const lease of new Set(leases)) {
    const released = await orFalse(() => limiter.release(lease));
    onGivenBack(released ? "released" : "unknown");
  }
  return leases;
}

/** Gives back right away, and makes those parts, and parts that may not give back, cost nothing in the decision. */
export async function giveBackParts(
  charged: readonly Asked[],
  parts: CheckPart[],
  { limiter, onGivenBack }: GiveBackOptions,
): Promise<void> {
  for (let i = 0; i < charged.length; i++) {
    const { descriptor, limit } = charged[i]!;
    if (!descriptor.isNegativeHits) continue;
    const part = parts[i + 1]!;
    const mayGiveBack = limit?.kind === "placed" && limit.placed.limit.negativeHits;
    const given = mayGiveBack && (await orFalse(() => limiter.giveBackAll([part])));
    onGivenBack(given ? "given-back" : "ignored");
    parts[i + 1] = { ...part, cost: 0 };
  }
  // A request that only gives back must not be charged under Sluice's own rules either.
  if (charged.length > 0 && charged.every(({ descriptor }) => descriptor.isNegativeHits)) {
    parts[0] = { ...parts[0]!, cost: 0 };
  }
}

/** While the store is down nothing can be given back, and an unknown lease is no reason to fail: the caller can fix neither. */
async function orFalse(work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SluiceError && (error.code === "store-unavailable" || error.code === "invalid-request"))
      return false;
    throw error;
  }
}
