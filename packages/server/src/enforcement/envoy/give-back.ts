/**
 * Gives back for Envoy: places, by the lease that it was given for them, and hits (`is_negative_hits`), where a limit allows that.
 *
 * A response that holds places carries their lease as dynamic metadata; Envoy puts it into a descriptor when the stream is done. So only a
 * stream that was admitted gives back, once, what it holds itself, and only a client that knows the lease can.
 * Negative hits name neither stream nor charge: any client of the port could empty a counter with them. They are honoured only for limits
 * that say so, give back at most what the counter holds, and are never passed on to Sluice's own rules.
 */
import { type CheckPart, type Lease, type Limiter, SluiceError } from "sluice";
import type { RateLimitDescriptor, RateLimitRequest } from "./rate-limit-messages.js";
import type { Asked } from "./should-rate-limit.js";

/** The key of the descriptor entry that holds a lease, and the name of it in the metadata of a response. */
export const LEASE_ENTRY = "sluice_lease";

/**
 * `unknown`: a lease that was given back before, has ended, or never was one. `ignored`: negative hits on a limit that takes none.
 * `abandoned`: Envoy left before it received the lease.
 */
export type GivenBackOutcome = "released" | "unknown" | "given-back" | "ignored" | "abandoned";

interface GiveBackOptions {
  readonly limiter: Limiter;
  readonly onGivenBack: (outcome: GivenBackOutcome) => void;
}

export function leaseOf({ entries }: RateLimitDescriptor): string | undefined {
  return entries.find(({ key }) => key === LEASE_ENTRY)?.value;
}

/** Frees the places of a call whose client has gone: its lease is known here only. */
export function abandon(lease: Lease, { onGivenBack }: Pick<GiveBackOptions, "onGivenBack">): void {
  onGivenBack("abandoned");
  void lease.release().catch(() => undefined);
}

/** The leases that the request gives back. */
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

/** The parts that give back do so now, and are then only looked at, as are those that may not. */
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
  // A request that only gives back does not ask for anything under Sluice's own rules.
  if (charged.length > 0 && charged.every(({ descriptor }) => descriptor.isNegativeHits)) {
    parts[0] = { ...parts[0]!, cost: 0 };
  }
}

/** While the store is away nothing can be given back, and a lease that is none is no reason to fail: the caller cannot mend either. */
async function orFalse(work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SluiceError && (error.code === "store-unavailable" || error.code === "invalid-request"))
      return false;
    throw error;
  }
}
