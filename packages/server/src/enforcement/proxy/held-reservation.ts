/**
 * Keeps a decision's reservation for as long as its response lives: begins its term anew before it ends, settles or cancels it once.
 */
import type { Attributes, Decision, Limiter } from "sluice";

interface HeldReservation {
  /** Call when the response is over, however it ended. Undefined: nothing was used. */
  end(used: Attributes | undefined): void;
}

interface HoldOptions {
  readonly limiter: Limiter;
  readonly decision: Decision;
  /** The least that the request has used so far. */
  readonly usedSoFar: () => Attributes;
  /** A rule with `overrun: stop` has no room for what the request uses. */
  readonly onRefused: () => void;
}

export function holdReservation({ limiter, decision, usedSoFar, onRefused }: HoldOptions): HeldReservation {
  const { reservation } = decision;
  if (reservation === undefined) return { end: () => undefined };
  const { id, expiresAfterMs } = reservation;
  const extend = async (): Promise<void> => {
    const extended = await limiter.extend(id, usedSoFar());
    if (!extended.allowed) onRefused();
  };
  // Three tries within a term, as for a lease: one that is lost must not let it end.
  const timer = setInterval(() => void extend().catch(ignore), Math.max(1, expiresAfterMs / 3));
  timer.unref();
  let ended = false;
  return {
    end(used) {
      if (ended) return;
      ended = true;
      clearInterval(timer);
      // Without the store the limiter keeps a settlement and sends it later.
      void (used === undefined ? limiter.cancel(id) : limiter.settle(id, used)).catch(ignore);
    },
  };
}

/** The reservation has expired, or the limiter is closed: what was held stands as spent. */
function ignore(): void {}
