/**
 * A policy: an algorithm with its numbers, compiled from a rule (durations in ms, fractions reduced). Immutable.
 * Stores see policies, never rules.
 */
import type { Calendar } from "./calendar.js";

/** Algorithms that can hand out turns in the future (`turns.ts`). */
interface Waiting {
  /** How far away a turn may be; absent: none is handed out. A counter's clock may be ahead of now by its window plus this. */
  readonly maxWaitMs?: number;
  /** How long this caller can wait, if less: turns count as usual, but none further away is handed out. */
  readonly callerWaitsMs?: number;
}

/** For token bucket and GCRA: `capacity` tokens, refilled by `amount` every `scaleMs`, as a reduced fraction. */
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
  /** For a calendar window, its nominal length (headers and charts need one number). */
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
  /** The most that one request may cost: the capacity of that counter. */
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
 * The most that may be charged or held beyond a limit at once. A counter stops at 2^53: a request that brought it there and then gave its
 * units back would take others' charges with it.
 */
const MOST_BEYOND_LIMIT = 2 ** 40;

/** The part of a cost that a counter accepts, whatever its limit. */
export function mostToCharge(cost: number, { limit }: Pick<Policy, "limit">): number {
  return Math.min(cost, Math.max(limit, MOST_BEYOND_LIMIT));
}

/** Whether two policies have the same numbers, one of them possibly read from JSON. */
export function isSamePolicy(a: Policy, b: Policy): boolean {
  if (a === b) return true;
  const [ofA, ofB] = [a, b] as unknown as [Record<string, unknown>, Record<string, unknown>];
  const names = new Set([...Object.keys(ofA), ...Object.keys(ofB)]);
  names.delete("calendar");
  for (const name of names) if (ofA[name] !== ofB[name]) return false;
  const [one, other] = [a, b].map((policy) => ("calendar" in policy ? policy.calendar : undefined));
  return one?.unit === other?.unit && one?.timezone === other?.timezone;
}

/** The most that one request may cost. */
export function capacityOf(policy: Policy): number {
  if ("capacity" in policy) return policy.capacity;
  return policy.stored === "pool" ? policy.largestCost : policy.limit;
}
