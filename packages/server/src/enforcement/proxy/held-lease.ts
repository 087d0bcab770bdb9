/** Keeps a decision's lease alive for the duration of a response: renews it before it expires, and releases it once. */
import type { Decision } from "sluice";
import { Lease } from "sluice/internal";

/** Called when the response is over. `hasLeft`: the client disconnected early, so the upstream may still be working for it. */
type ReleaseLease = (hasLeft: boolean) => void;

export function holdLease({ lease }: Decision): ReleaseLease {
  if (lease === undefined) return () => undefined;
  const stopRenewing = Lease.keep(lease);
  let released = false;
  return (hasLeft) => {
    if (released) return;
    released = true;
    stopRenewing();
    // If the store is down the release fails, and the lease expires by itself.
    void (hasLeft ? Lease.leave(lease) : lease.release()).catch(() => undefined);
  };
}
