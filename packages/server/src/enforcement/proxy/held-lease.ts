/**
 * Holds a decision's lease for as long as a response lives: renews it before it ends, frees it once.
 */
import type { Decision } from "sluice";

/** Call when the response is over, however it ended. */
type ReleaseLease = () => void;

export function holdLease({ lease }: Decision): ReleaseLease {
  if (lease === undefined) return () => undefined;
  // Three tries within a term: one lost renewal must not free a place that is still used.
  const timer = setInterval(() => void lease.renew().catch(() => undefined), Math.max(1, lease.expiresAfterMs / 3));
  timer.unref();
  let released = false;
  return () => {
    if (released) return;
    released = true;
    clearInterval(timer);
    // Without the store the release fails; the lease then expires by itself.
    void lease.release().catch(() => undefined);
  };
}
