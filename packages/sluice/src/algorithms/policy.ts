/**
 * A policy: an algorithm with its numbers, compiled from a rule (durations in ms, fractions reduced). Immutable.
 * Stores see policies, never rules.
 */
import type { Calendar } from "./calendar.js";

/** Of algorithms that can hand out turns in the future (`turns.ts`). */
interface Waiting {
  /** How far away a turn may be; absent: none is handed out. A counter may lie ahead of now by so much more than its window. */
  readonly maxWaitMs?: number;
  /** The caller cannot wait: turns count as they do, but none is handed out. */
  readonly noWait?: true;
}

/** Both the token bucket and GCRA: `capacity` tokens, refilled by `amount` every `scaleMs`, as a reduced fraction. */
export interface BucketPolicy extends Waiting {
  readonly stored: "token-bucket" | "gcra";
  readonly limit: number;
  readonly capacity: number;
  readonly amount: number;
  readonly scaleMs: number;
}

export interface FixedWindowPolicy extends Waiting {
  readonly stored: "fixed-window";
  readonly limit: number;
  /** For a calendar window, how long it is called (headers and charts need one number). */
  readonly windowMs: number;
  readonly calendar?: Calendar;
}

export interface SlidingCounterPolicy {
  readonly stored: "sliding-counter";
  readonly limit: number;
  readonly windowMs: number;
}

export interface RollingWindowPolicy extends Waiting {
  readonly stored: "rolling-window" | "rolling-window-packed";
  readonly limit: number;
  readonly windowMs: number;
  readonly minIntervalMs: number;
}

export interface ConcurrencyPolicy {
  readonly stored: "concurrency";
  readonly limit: number;
  readonly ttlMs: number;
}

/** A region's units of a counter in the global store, whose limit this is. */
export interface PoolPolicy {
  readonly stored: "pool";
  readonly limit: number;
  /** How much one request may cost at most: the capacity of that counter. */
  readonly largestCost: number;
}

export type Policy =
  | BucketPolicy
  | FixedWindowPolicy
  | SlidingCounterPolicy
  | RollingWindowPolicy
  | ConcurrencyPolicy
  | PoolPolicy;

/**
 * What is charged or held beyond a limit at once. A counter stops at 2^53: what one request brings it there with, and then gives back, would
 * take the charges of others along.
 */
const MOST_BEYOND_LIMIT = 2 ** 40;

/** The part of a cost that a counter takes whatever its limit is. */
export function mostToCharge(cost: number, { limit }: Pick<Policy, "limit">): number {
  return Math.min(cost, Math.max(limit, MOST_BEYOND_LIMIT));
}

/** How much one request may cost at most. */
export function capacityOf(policy: Policy): number {
  if ("capacity" in policy) return policy.capacity;
  return policy.stored === "pool" ? policy.largestCost : policy.limit;
}
