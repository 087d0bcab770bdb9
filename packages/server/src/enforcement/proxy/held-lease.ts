/**
 * Holds a decision's lease for as long as a response lives: renews it before it ends, frees it once.
 */
import type { Decision } from "sluice";
import { Lease } from "sluice/internal";

/** Call when the response is over. `hasLeft`: its client did not wait for the end, and the upstream may still work for it. */
type ReleaseLease = (hasLeft: boolean) => void;

export function holdLease({ lease }: Decision): ReleaseLease {
  if (lease === undefined) return () => undefined;
  const timer = setInterval(() => void lease.renew().catch(() => undefined), Lease.renewEveryMs(lease));
  timer.unref();
  let released = false;
  return (hasLeft) => {
    if (released) return;
    released = true;
    clearInterval(timer);
    // Without the store the release fails; the lease then expires by itself.
    void (hasLeft ? Lease.leave(lease) : lease.release()).catch(() => undefined);
  };
}
