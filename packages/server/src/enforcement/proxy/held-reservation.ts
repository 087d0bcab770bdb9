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

/** How often a stream under `overrun: stop` is asked how far it is: a second's tokens pass beyond the limit, not a term's. */
const LOOK_MS = 1_000;

export function holdReservation({ limiter, decision, usedSoFar, onRefused }: HoldOptions): HeldReservation {
  const { reservation } = decision;
  if (reservation === undefined) return { end: () => undefined };
  const { id, expiresAfterMs } = reservation;
  const stopping = stoppingCosts(limiter, reservation.held);
  // Three tries within a term, as for a lease: one that is lost must not let it end.
  const termMs = Math.max(1, expiresAfterMs / 3);
  const everyMs = stopping.size === 0 ? termMs : Math.min(termMs, LOOK_MS);
  let sinceExtendedMs = 0;
  const look = async (): Promise<void> => {
    sinceExtendedMs += everyMs;
    const used = usedSoFar();
    const isBeyond = [...stopping].some(([attribute, held]) => Number(used[attribute] ?? 0) > held);
    if (!isBeyond && sinceExtendedMs < termMs) return;
    sinceExtendedMs = 0;
    const extended = await limiter.extend(id, used);
    if (!extended.allowed) onRefused();
    else
      for (const [attribute, held] of stopping) stopping.set(attribute, Math.max(held, Number(used[attribute] ?? 0)));
  };
  const timer = setInterval(() => void look().catch(ignore), everyMs);
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

/** What is held of each cost that must not pass its limit, by its attribute. */
function stoppingCosts(limiter: Limiter, held: Readonly<Record<string, number>>): Map<string, number> {
  const costs = new Map<string, number>();
  for (const [id, units] of Object.entries(held)) {
    const { cost, estimate } = limiter.findRule(id) ?? {};
    if (estimate?.overrun !== "stop" || typeof cost !== "object") continue;
    costs.set(cost.attribute, Math.min(units, costs.get(cost.attribute) ?? units));
  }
  return costs;
}

/** The reservation has expired, or the limiter is closed: what was held stands as spent. */
function ignore(): void {}
