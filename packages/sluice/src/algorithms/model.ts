/**
 * The interface of every algorithm's TypeScript model. The memory store runs the models in production; the Lua body of the same
 * stem is their twin. Time is an argument; a model never reads a clock.
 *
 * A key's own clock never goes back: each model takes the later of `nowMs` and the last charge, so that time which a stepping
 * clock lives twice frees quota once. A charge that lies ahead of now by more than a window was stamped by a clock that was wrong:
 * the counter is moved to now (`docs/decisions/0011`), by the first look that finds it so.
 */
import type { Reason } from "../decision.js";
import type { Policy } from "./policy.js";

/**
 * The most units that a counter holds: beyond it, numbers would no longer be exact. A charge that would pass it saturates the counter. How
 * much of it was added is not recorded, so nothing that a saturated counter holds by then can be refunded: it would take the charges of
 * others along.
 */
export const MOST_UNITS = Number.MAX_SAFE_INTEGER;

/** A hundred years: the longest wait reported, and the longest that a counter is kept. */
export const LONGEST_WAIT_MS = 3_155_760_000_000;

/** The finding of a look, which a charge then changes: numbers after the charge. */
export interface Verdict {
  allowed: boolean;
  /** Below 0 where the counter is past its limit: by so many units. */
  remaining: number;
  retryAfterMs: number;
  resetAfterMs: number;
  reason: Reason | undefined;
  /** Whether the store charged it. */
  charged: boolean;
  /** How long until the request's turn comes, which is when it counts; 0: now. */
  delayMs: number;
  /** Of a bucket that it charged: what had been given back to it by then, in the bucket's unit. Absent: nothing. */
  given?: number;
}

/** State of one key. From `endsAtMs` on it means the same as no state at all. */
export interface State {
  endsAtMs: number;
  /** What the store that keeps it counts it as, and whether it holds it among those that are used up; models leave both alone. */
  bytes: number;
  isUsedUp: boolean;
  /** Charges before it cannot be refunded: the counter was empty since, was reset, or was saturated. */
  bornMs: number;
}

export interface Charge {
  readonly cost: number;
  readonly nowMs: number;
  /** Tells this request's entries from others: a refund or a release names it. */
  readonly requestId: string;
}

export interface Refund {
  readonly cost: number;
  readonly nowMs: number;
  readonly chargedAtMs: number;
  readonly requestId: string;
  /** Of a bucket: what it lacked right after the charge, and had been given back by then (`owedAfter`). */
  readonly owed?: number;
  /** Where only a part of a charge is given back: the cost of all of it. */
  readonly wholeCost?: number;
}

export interface GivenBack {
  readonly cost: number;
  readonly nowMs: number;
}

export interface Model<P extends Policy, S extends State> {
  fresh(): S;
  /** Judges a request without charging. Cost 0 is always allowed, unless `strict`: then it is refused past the limit. */
  look(state: S, policy: P, cost: number, nowMs: number, strict?: boolean): Verdict;
  /** Charges, whether or not a look would allow it, and brings the verdict up to date. */
  charge(state: S, policy: P, charge: Charge, verdict: Verdict): void;
  /** Gives back a charge, never beyond an empty counter. */
  refund(state: S, policy: P, refund: Refund): void;
  /**
   * Gives back without naming a charge: the newest first, never beyond an empty counter. (Places are the exception, see
   * concurrency.ts.) True if there was anything to give back.
   */
  giveBack(state: S, policy: P, given: GivenBack): boolean;
  /** The stored numbers, for people to read; inspect.lua uses the same words. */
  describe(state: S): Record<string, number>;
}

/** In the order of the scripts' replies. */
export function verdict(
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
  reason: Reason | undefined,
): Verdict {
  return { allowed, remaining, retryAfterMs, resetAfterMs, reason, charged: false, delayMs: 0 };
}
