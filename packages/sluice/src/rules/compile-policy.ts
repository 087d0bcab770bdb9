/**
 * Turns an algorithm's numbers, as rules contain them, into the policy that stores run: durations in ms, rates as reduced fractions,
 * defaults filled in. In: validated numbers. Pure.
 */
import { type Calendar, calendarMs } from "../algorithms/calendar.js";
import type { BucketPolicy, Policy } from "../algorithms/policy.js";
import { fillTime } from "../algorithms/token-bucket.js";
import { parseDuration } from "./duration.js";
import type { AlgorithmNumbers, Duration, FixedWindowNumbers, RollingStorage } from "./rule.js";

/**
 * How Redis stores a rolling window by default: packed has the same meaning as the paper's sorted set, in an eighth of the memory or less
 * and in less time (docs/decisions/0012).
 */
export const DEFAULT_ROLLING_STORAGE: RollingStorage = "packed";
const DEFAULT_TTL: Duration = "30s";
const DEFAULT_TIMEZONE = "UTC";

export const calendarUnits: ReadonlyMap<Duration, Calendar["unit"]> = new Map([
  ["day", "day"],
  ["1d", "day"],
  ["week", "week"],
  ["7d", "week"],
  ["month", "month"],
]);

export function compilePolicy(numbers: AlgorithmNumbers): Policy {
  const maxWaitMs = maxWaitMsOf(numbers);
  const policy = policyOf(numbers);
  return maxWaitMs === 0 ? policy : ({ ...policy, maxWaitMs } as Policy);
}

function policyOf(numbers: AlgorithmNumbers): Policy {
  const { limit } = numbers;
  if (limit === 0) return nothing(numbers);
  switch (numbers.algorithm) {
    case "token-bucket": {
      const rate =
        numbers.refill === undefined
          ? { amount: limit, everyMs: msOf(numbers.window) }
          : { amount: numbers.refill.amount, everyMs: msOf(numbers.refill.every) };
      return bucket({ stored: "token-bucket", limit, capacity: limit, ...rate });
    }
    case "gcra": {
      const capacity = numbers.burst ?? limit;
      return bucket({ stored: "gcra", limit, capacity, amount: limit, everyMs: msOf(numbers.window) });
    }
    case "fixed-window":
      return numbers.align === "calendar"
        ? calendarWindow(numbers)
        : { stored: "fixed-window", limit, windowMs: msOf(numbers.window) };
    case "sliding-counter":
      return { stored: "sliding-counter", limit, windowMs: msOf(numbers.window) };
    case "rolling-window":
      return {
        stored: (numbers.storage ?? DEFAULT_ROLLING_STORAGE) === "packed" ? "rolling-window-packed" : "rolling-window",
        limit,
        windowMs: msOf(numbers.window),
        minIntervalMs: numbers.minInterval === undefined ? 0 : msOf(numbers.minInterval),
      };
    case "concurrency":
      return { stored: "concurrency", limit, ttlMs: msOf(numbers.ttl ?? DEFAULT_TTL) };
  }
}

/** 0 if the rule has no prefetch. */
export function prefetchMsOf(numbers: AlgorithmNumbers): number {
  return "prefetch" in numbers && numbers.prefetch !== undefined && numbers.limit > 0 ? msOf(numbers.prefetch) : 0;
}

/** 0 if the rule hands out no turns. */
export function maxWaitMsOf(numbers: AlgorithmNumbers): number {
  return "maxWait" in numbers && numbers.maxWait !== undefined && numbers.limit > 0 ? msOf(numbers.maxWait) : 0;
}

/** How long a region may hold units: long compared with a round trip around the world, short compared with the window. */
const SHORTEST_REGION_TERM_MS = 1_000;
const LONGEST_REGION_TERM_MS = 10_000;

/** 0 for a limit of 0, which every region refuses on its own. */
export function regionTermOf(policy: Policy): number {
  if (policy.limit === 0) return 0;
  const spanMs = "capacity" in policy ? fillTime(policy) : "windowMs" in policy ? policy.windowMs : 0;
  const termMs = Math.min(LONGEST_REGION_TERM_MS, Math.max(SHORTEST_REGION_TERM_MS, spanMs / 10));
  return Math.floor(Math.min(termMs, spanMs / 2));
}

/** A limit of 0 refuses everything: that needs no algorithm, and a rate of 0 would have no valid numbers. */
function nothing(numbers: AlgorithmNumbers): Policy {
  const windowMs = "window" in numbers ? parseDuration(numbers.window) : undefined;
  return { stored: "fixed-window", limit: 0, windowMs: windowMs ?? calendarMs.day };
}

/** The lengths of a rule's successive blocks; undefined if it has none. */
export function blockLengths(numbers: AlgorithmNumbers): readonly number[] | undefined {
  const blockFor = "blockFor" in numbers ? numbers.blockFor : undefined;
  if (blockFor === undefined) return undefined;
  return (typeof blockFor === "string" ? [blockFor] : blockFor).map(msOf);
}

function bucket(rate: Omit<BucketPolicy, "scaleMs"> & { everyMs: number }): BucketPolicy {
  const { stored, limit, capacity, amount, everyMs } = rate;
  const divisor = greatestCommonDivisor(amount, everyMs);
  return { stored, limit, capacity, amount: amount / divisor, scaleMs: everyMs / divisor };
}

function calendarWindow(numbers: FixedWindowNumbers): Policy {
  const unit = calendarUnits.get(numbers.window);
  if (unit === undefined) throw new TypeError(`not a calendar window: ${numbers.window}`);
  return {
    stored: "fixed-window",
    limit: numbers.limit,
    windowMs: calendarMs[unit],
    calendar: { unit, timezone: numbers.timezone ?? DEFAULT_TIMEZONE },
  };
}

/** Rules are validated before they are compiled, so an unreadable duration here is a bug. */
function msOf(duration: Duration | undefined): number {
  const ms = parseDuration(duration);
  if (ms === undefined) throw new TypeError(`not a duration: ${duration}`);
  return ms;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
