/**
 * How many units a region fetches, and what its pool records afterwards. In: the pool's numbers, what waits, the answer of the global
 * store. Out: the fetch, the fill. Pure: time is an argument.
 */
import type { Fetch, Grant } from "../algorithms/grants.js";
import type { BucketPolicy, Policy } from "../algorithms/policy.js";
import type { PoolAsked, PoolFill } from "../algorithms/pool.js";
import { MOST_ENTRIES } from "../algorithms/rolling-window.js";
import type { CheckPlan } from "../check.js";

/** Clocks may drift apart by this fraction of a term; both stores' clocks also truncate a fraction of a millisecond. */
const DRIFT = 0.02;
const TRUNCATION_MS = 2;
const MOST_WANTED = 1_000_000;
/**
 * A pool that requests found empty was too small: it grows by this factor, up to a fraction of what the whole limit gives in a term; a pool
 * that was idle starts with a smaller fraction.
 */
const GROWTH = 4;
const GROWN_PART = 1 / 4;
const FIRST_PART = 1 / 16;
/**
 * While the global store has plenty, a region fetches this fraction of its even share beyond what it uses: its next fetch is then a whole
 * term away, and a hot spot that moves here finds units. Near the limit nothing is left to spare, and units stay where they are used.
 */
const SPARE_PART = 1 / 3;
/** Units are renewed this fraction of a term, plus a round trip, before they expire. */
export const RENEW_PART = 1 / 8;
/** The share covers about a window: under overload a limit is used in waves, one per window. */
const SHARE_TERMS = 10;
/** From this many waiting requests, the arrival rate can be estimated. */
const TELLING_REQUESTS = 4;
/**
 * A refusal is remembered for at least this fraction of a term, so that a region asks at most a few times per term; and for no longer than
 * this.
 */
const REFUSAL_PART = 1 / 8;
const LONGEST_REFUSAL_MS = 1_000;

/** Requests waiting for units: how many units, for how long, and the least that one of them needs. */
export interface Waiting {
  readonly units: number;
  readonly forMs: number;
  readonly leastCost: number;
}

interface FetchSize {
  readonly want: number;
  readonly need: number;
  /** Units per millisecond. */
  readonly rate: number;
  readonly share: number;
  /** The next fetch is due at or below this many units. */
  readonly low: number;
}

/** What the fetching instance knows besides the pool's numbers. */
interface FetchFacts {
  readonly waiting: Waiting;
  readonly roundTripMs: number;
  /** Units left in the global store, by its last answer; and how many regions share it. */
  readonly left: number;
  readonly regions: number;
  readonly isLast: boolean;
}

/** Units per millisecond that the limit gives. */
function rateOf(policy: Policy): number {
  if ("capacity" in policy) return (policy as BucketPolicy).amount / (policy as BucketPolicy).scaleMs;
  return "windowMs" in policy ? policy.limit / policy.windowMs : 0;
}

export function sizeFetch(
  { policy, regionTermMs: termMs }: CheckPlan,
  { numbers, held, arrived, elapsedMs }: PoolAsked,
  { waiting, roundTripMs, left, regions, isLast }: FetchFacts,
): FetchSize {
  const limitRate = rateOf(policy);
  const seenRate = elapsedMs > 0 ? arrived / elapsedMs : 0;
  let rate = blended(numbers.rate, seenRate, elapsedMs, Math.max(250, termMs / 4));
  if (waiting.units >= TELLING_REQUESTS && waiting.forMs > 0) rate = Math.max(rate, waiting.units / waiting.forMs);
  const seenShare = Math.min(1, seenRate / limitRate);
  const share =
    elapsedMs === 0
      ? numbers.share
      : numbers.share < 0
        ? seenShare
        : blended(numbers.share, seenShare, elapsedMs, SHARE_TERMS * termMs);
  const { units } = numbers;
  // Those that instances hold are not for the requests that wait here.
  const need = Math.max(0, waiting.units - Math.max(0, units - held));
  if (isLast || (arrived === 0 && waiting.units === 0)) return { want: 0, need: 0, rate, share, low: 0 };
  const cycleMs = termMs / 2 + Math.min(roundTripMs, termMs / 2);
  const used = rate * cycleMs;
  const termLimit = limitRate * termMs;
  const inTerm = waiting.units > 0 ? termLimit : 0;
  const grown = Math.floor(Math.max(inTerm * FIRST_PART, Math.min(inTerm * GROWN_PART, GROWTH * used)));
  // Requests arrive unevenly: add three standard deviations.
  const base = Math.max(grown, Math.ceil(used + 3 * Math.sqrt(used)));
  const spare = Math.min(Math.max(rate * termMs, termLimit * FIRST_PART), (left * SPARE_PART) / regions);
  const wanted = base + Math.floor(spare);
  const most = policy.stored === "rolling-window" ? MOST_ENTRIES : MOST_WANTED;
  const want = Math.min(most, Math.max(need, wanted - units));
  // At least one, so that a refusal reports when to come again.
  return { want, need: want === 0 ? 0 : Math.min(most, Math.max(1, need)), rate, share, low: base / 2 };
}

function blended(old: number, seen: number, elapsedMs: number, memoryMs: number): number {
  return old + (1 - Math.exp(-elapsedMs / memoryMs)) * (seen - old);
}

interface Answered {
  readonly plan: CheckPlan;
  readonly asked: PoolAsked;
  readonly size: FetchSize;
  readonly fetch: Fetch;
  readonly grant: Grant;
  readonly resetAfterMs: number;
  readonly waiting: Waiting;
  readonly roundTripMs: number;
}

/** How long granted units are usable: counted from before the fetch was sent, so that clocks need not agree. */
export function usableMs({ lifeMs }: Grant): number {
  return Math.max(0, Math.floor(lifeMs * (1 - DRIFT)) - TRUNCATION_MS);
}

export function fillOf({ plan, asked, size, fetch, grant, resetAfterMs, waiting, roundTripMs }: Answered): PoolFill {
  const lifeMs = usableMs(grant);
  const unitsEndMs = asked.nowMs + lifeMs;
  const isShort = grant.units < size.need || (grant.units === 0 && size.want > 0);
  const units = asked.numbers.units + grant.units;
  // Used less than once a term: a fetch ahead would cost the global store as much as the next request's own fetch, and hold what others
  // could use.
  const isRare = size.rate * plan.regionTermMs < 1 && units <= size.need;
  const { retryAfterMs = 0 } = grant;
  const retryMs = Math.max(1, Math.ceil(retryAfterMs - roundTripMs));
  const leastMs = plan.regionTermMs * REFUSAL_PART;
  const refusedForMs = isShort ? Math.ceil(Math.min(LONGEST_REFUSAL_MS, Math.max(leastMs, retryMs))) : 0;
  return {
    seq: fetch.seq,
    isAnswered: true,
    units: grant.units,
    kept: grant.kept,
    unitsEndMs,
    lowPart: isRare || (isShort && grant.units === 0) ? -1 : Math.min(0.5, size.low / Math.max(1, units)),
    renewAtMs: unitsEndMs - Math.ceil(lifeMs * RENEW_PART + roundTripMs),
    refusedForMs,
    refusedCost: Math.max(1, waiting.leastCost),
    retryAfterMs: Math.max(refusedForMs, retryMs),
    resetAfterMs: Math.max(0, resetAfterMs),
    rate: size.rate,
    share: size.share,
  };
}

export function failedFill(seq: number): PoolFill {
  return {
    seq,
    isAnswered: false,
    units: 0,
    kept: 0,
    unitsEndMs: 0,
    lowPart: 0,
    renewAtMs: 0,
    refusedForMs: 0,
    refusedCost: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    rate: 0,
    share: 0,
  };
}
