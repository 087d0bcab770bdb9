/**
 * Keeps a decision's reservation for as long as its response lives: renews it before it expires, holds more if the response uses more than
 * was held, and settles or cancels it once.
 */
import type { Reservation } from "../decision.js";
import { SluiceError } from "../errors.js";
import type { Attributes } from "../rules/rule.js";
import type { Limiter } from "./limiter.js";

type Used = Attributes | undefined;

interface HeldReservation {
  /**
   * Call when the response is over, however it ended. Undefined: nothing was used. Empty: usage unknown, so what was held counts as spent.
   */
  end(used: Used | Promise<Used>): void;
}

interface HoldOptions {
  readonly limiter: Limiter;
  readonly reservation: Reservation | undefined;
  /** The least that the request has used so far, where known. */
  readonly usedSoFar: () => Attributes;
  /** Called if a rule with `overrun: stop` has no room for what the request uses. */
  readonly onRefused: () => void;
  /** Called if the costs could not be determined, are malformed, or name none that the reservation waits for. */
  readonly onMistake?: (error: unknown) => void;
}

interface HeldCost {
  held: number;
  /** True if its rule has `overrun: stop`. */
  readonly stops: boolean;
}

/** How often a response's usage is read: a second of use may pass uncounted, not a whole term. */
const LOOK_MS = 1_000;
/** A response that may finish holds a quarter more than it has used, and at least this much more, because it will go on. */
const FEWEST_MORE = 64;

export function holdReservation(options: HoldOptions): HeldReservation {
  const { limiter, reservation, usedSoFar, onRefused, onMistake = ignore } = options;
  if (reservation === undefined) return { end: ignore };
  const { id, expiresAfterMs } = reservation;
  const costs = heldCosts(limiter, reservation.held);
  // Three attempts per term, as for a lease: one lost attempt must not let it expire.
  const termMs = Math.max(1, expiresAfterMs / 3);
  const everyMs = Math.min(termMs, LOOK_MS);
  let sinceExtendedMs = 0;
  let isAsking = false;
  const look = async (): Promise<void> => {
    sinceExtendedMs += everyMs;
    if (isAsking) return;
    const { wanted, isBeyond } = wantedOf(costs, usedSoFar());
    if (!isBeyond && sinceExtendedMs < termMs) return;
    sinceExtendedMs = 0;
    isAsking = true;
    try {
      const { allowed } = await limiter.extend(id, Object.fromEntries(wanted));
      if (!allowed) onRefused();
      else for (const [name, cost] of costs) cost.held = Math.max(cost.held, wanted.get(name) ?? 0);
    } catch (error) {
      // The reservation has expired or was settled elsewhere: there is nothing left to extend.
      if (error instanceof SluiceError && error.code === "unknown-reservation") clearInterval(timer);
    } finally {
      isAsking = false;
    }
  };
  const timer = setInterval(() => void look().catch(ignore), everyMs);
  timer.unref();
  let ended = false;
  return {
    end(used) {
      if (ended) return;
      ended = true;
      clearInterval(timer);
      void Promise.resolve(used)
        .then(async (costs) => {
          // While the store is away, the limiter keeps the settlement and sends it later.
          if (costs === undefined) await limiter.cancel(id);
          else if (Object.keys(costs).length > 0) await limiter.settle(id, costs);
        })
        .catch(onMistake);
    },
  };
}

/** The totals to hold now. An unknown total is asked for at 0, which renews the term and holds no more. */
function wantedOf(
  costs: ReadonlyMap<string, HeldCost>,
  usedSoFar: Attributes,
): { wanted: ReadonlyMap<string, number>; isBeyond: boolean } {
  // A Map, not an object: a cost's attribute may be named "constructor" or "__proto__".
  const wanted = new Map<string, number>();
  let isBeyond = false;
  for (const [name, { held, stops }] of costs) {
    const used = Number((Object.hasOwn(usedSoFar, name) ? usedSoFar[name] : undefined) ?? 0);
    const isMore = used > held;
    isBeyond ||= isMore;
    // Hold ahead of need only if that cannot cause a refusal.
    wanted.set(name, isMore && !stops ? used + Math.max(FEWEST_MORE, Math.ceil(used / 4)) : used);
  }
  return { wanted, isBeyond };
}

/** What is held of each cost, by its attribute; the smallest amount if several rules count the same attribute. */
function heldCosts(limiter: Limiter, held: Readonly<Record<string, number>>): Map<string, HeldCost> {
  const costs = new Map<string, HeldCost>();
  for (const [id, units] of Object.entries(held)) {
    const { cost, estimate } = limiter.findRule(id) ?? {};
    if (typeof cost !== "object") continue;
    const known = costs.get(cost.attribute);
    const stops = estimate?.overrun === "stop" || known?.stops === true;
    costs.set(cost.attribute, { held: Math.min(units, known?.held ?? units), stops });
  }
  return costs;
}

/** The reservation has expired, or the limiter is closed: what was held counts as spent. */
function ignore(): void {}
