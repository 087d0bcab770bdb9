/**
 * The interface of every algorithm's TypeScript model. The memory store runs the models in production; the Lua body of the same name is
 * their twin. Time is an argument; a model never reads a clock.
 *
 * A key's own clock never goes back: each model takes the later of `nowMs` and the last charge, so that time that passes twice after a
 * clock step frees quota once. A charge more than a window ahead of now was stamped by a clock that was wrong: the first look that finds it
 * moves the counter to now (`docs/decisions/0011`).
 */
import type { Reason } from "../decision.js";
import type { Policy } from "./policy.js";

/**
 * The most units that a counter holds: beyond it, numbers would no longer be exact. A charge that would exceed it saturates the counter.
 * How much of that charge was added is not recorded, so nothing that a saturated counter holds by then can be refunded: a refund would take
 * others' charges with it.
 */
export const MOST_UNITS = Number.MAX_SAFE_INTEGER;

/** A hundred years: the longest wait reported, and the longest that a counter is kept. */
export const LONGEST_WAIT_MS = 3_155_760_000_000;

/** The result of a look. A charge then updates it to the numbers after the charge. */
export interface Verdict {
  allowed: boolean;
  /** Negative if the counter is past its limit: by this many units. */
  remaining: number;
  retryAfterMs: number;
  resetAfterMs: number;
  reason: Reason | undefined;
  /** Whether the store charged it. */
  charged: boolean;
  /** How long until the request's turn comes, which is when it counts; 0 means now. */
  delayMs: number;
  /** For a bucket that was charged: what had been given back to it by then, in the bucket's unit. Absent: nothing. */
  given?: number;
}

/** The state of one key. From `endsAtMs` on it is equivalent to no state. */
export interface State {
  endsAtMs: number;
  /** For the store that keeps it: its accounted size, and whether it is stored among the used-up ones. Models touch neither. */
  bytes: number;
  isUsedUp: boolean;
  /** Charges before this cannot be refunded: the counter has been empty since, was reset, or was saturated. */
  bornMs: number;
}

export interface Charge {
  readonly cost: number;
  readonly nowMs: number;
  /** Distinguishes this request's entries from others: a refund or a release uses it. */
  readonly requestId: string;
}

export interface Refund {
  readonly cost: number;
  readonly nowMs: number;
  readonly chargedAtMs: number;
  readonly requestId: string;
  /** For a bucket: what it lacked right after the charge, plus what had been given back by then (`owedAfter`). */
  readonly owed?: number;
  /** If only a part of a charge is given back: the cost of the whole charge. */
  readonly wholeCost?: number;
}

export interface GivenBack {
  readonly cost: number;
  readonly nowMs: number;
}

export interface Model<P extends Policy, S extends State> {
  fresh(): S;
  /** Decides a request without charging. Cost 0 is always allowed, unless `strict`: then it is refused if the counter is past its limit. */
  look(state: S, policy: P, cost: number, nowMs: number, strict?: boolean): Verdict;
  /** Charges, whether or not a look would allow it, and updates the verdict. */
  charge(state: S, policy: P, charge: Charge, verdict: Verdict): void;
  /** Gives back a charge, never beyond an empty counter. */
  refund(state: S, policy: P, refund: Refund): void;
  /**
   * Gives units back without naming a charge: the newest first, never beyond an empty counter. (Places are the exception, see
   * concurrency.ts.) True if there was anything to give back.
   */
  giveBack(state: S, policy: P, given: GivenBack): boolean;
  /** The stored numbers, for humans; inspect.lua uses the same names. */
  describe(state: S): Record<string, number>;
}

/** Parameters are in the order of the scripts' replies. */
export function verdict(
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
  reason: Reason | undefined,
): Verdict {
  return { allowed, remaining, retryAfterMs, resetAfterMs, reason, charged: false, delayMs: 0 };
}
