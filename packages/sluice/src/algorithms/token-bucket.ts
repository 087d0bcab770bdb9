/**
 * Token bucket (paper, Algorithm 1). Twin: token-bucket.lua.
 * The bucket is kept as its deficit, in units of 1/scaleMs token: refill then is a whole number of units a millisecond, and
 * nothing drifts however many operations there are.
 */
import { NEVER_MS } from "../decision.js";
import {
  type Charge,
  type GivenBack,
  LONGEST_WAIT_MS,
  MOST_UNITS,
  type Model,
  type Refund,
  type State,
  type Verdict,
  verdict,
} from "./model.js";
import type { BucketPolicy } from "./policy.js";

export interface BucketState extends State {
  deficit: number;
  lastMs: number;
  /** The unit of `deficit`; differs from the policy's after the rule's numbers changed. */
  scaleMs: number;
  /** What was given back since the bucket was full, in the unit of `deficit`. */
  given: number;
}

/** As far back as the stored form can say: four bytes, of which one value says that the bucket was saturated by its last charge. */
export const OLDEST_BIRTH_MS = 2 ** 32 - 2;

/**
 * A bucket is saturated well below the bound of the others: its unit is a fraction of a token, and beyond 2^53 of these a charge is rounded.
 * At so many tokens, to a thousandth of one; at 2^53 tokens charges and refunds of others would leave no more than noise of a counter.
 */
const MOST_BEYOND_CAPACITY = 2 ** 43;

function saturate(state: BucketState, policy: BucketPolicy, atMs: number): void {
  const most = Math.min(MOST_UNITS, policy.capacity + MOST_BEYOND_CAPACITY) * policy.scaleMs;
  if (state.deficit <= most) return;
  state.deficit = most;
  state.bornMs = atMs + 1;
}

function waitFor(units: number, policy: BucketPolicy): number {
  return Math.min(LONGEST_WAIT_MS, Math.ceil(units / policy.amount));
}

/** The key's own clock. Rare work stands apart, here and below: V8 inlines short functions, and these are run for every check. */
function clockOf(state: BucketState, policy: BucketPolicy, nowMs: number): number {
  return state.lastMs <= nowMs ? nowMs : clockAhead(state, policy, nowMs);
}

/** How long an empty bucket takes to fill. */
export function fillTime(policy: BucketPolicy): number {
  return waitFor(policy.capacity * policy.scaleMs, policy);
}

function clockAhead(state: BucketState, policy: BucketPolicy, nowMs: number): number {
  if (state.lastMs - nowMs <= fillTime(policy) + (policy.maxWaitMs ?? 0)) return state.lastMs;
  state.lastMs = nowMs;
  state.bornMs = Math.min(state.bornMs, nowMs);
  state.endsAtMs = nowMs + waitFor(deficitAt(state, policy, nowMs), policy);
  return nowMs;
}

function deficitAt(state: BucketState, policy: BucketPolicy, atMs: number): number {
  const deficit = state.scaleMs === policy.scaleMs ? state.deficit : rescaled(state, policy);
  return Math.max(0, deficit - (atMs - state.lastMs) * policy.amount);
}

/** The rule's numbers changed: the missing tokens are the same, counted in another unit. */
function rescaled({ deficit, scaleMs }: BucketState, policy: BucketPolicy): number {
  return deficit === 0 ? 0 : Math.ceil((deficit / scaleMs) * policy.scaleMs);
}
function remainingOf(policy: BucketPolicy, deficit: number): number {
  return Math.min(policy.capacity, Math.floor((policy.capacity * policy.scaleMs - deficit) / policy.scaleMs));
}

function lower(state: BucketState, units: number): void {
  const given = Math.min(units, state.deficit);
  state.deficit -= given;
  state.given += given;
}

export const tokenBucket: Model<BucketPolicy, BucketState> = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, deficit: 0, lastMs: 0, scaleMs: 0, given: 0 }),

  look(state: BucketState, policy: BucketPolicy, cost: number, nowMs: number, strict?: boolean): Verdict {
    const atMs = clockOf(state, policy, nowMs);
    const deficit = deficitAt(state, policy, atMs);
    const remaining = remainingOf(policy, deficit);
    const aheadMs = atMs - nowMs;
    const resetAfterMs = deficit === 0 ? 0 : waitFor(deficit, policy) + aheadMs;
    if (cost === 0 && !strict) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cost > policy.capacity) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    const over = deficit + cost * policy.scaleMs - policy.capacity * policy.scaleMs;
    if (over > 0) return verdict(false, remaining, waitFor(over, policy) + aheadMs, resetAfterMs, "limit");
    return verdict(true, remaining, 0, resetAfterMs, undefined);
  },

  charge(state: BucketState, policy: BucketPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    const atMs = clockOf(state, policy, nowMs);
    const deficit = deficitAt(state, policy, atMs);
    state.bornMs = Math.max(state.bornMs, deficit === 0 ? atMs : atMs - OLDEST_BIRTH_MS);
    if (deficit === 0) state.given = 0;
    else if (state.given > 0 && state.scaleMs !== policy.scaleMs)
      state.given = Math.ceil((state.given / state.scaleMs) * policy.scaleMs);
    state.deficit = deficit + cost * policy.scaleMs;
    state.lastMs = atMs;
    if (state.deficit > MOST_BEYOND_CAPACITY * policy.scaleMs) saturate(state, policy, atMs);
    state.scaleMs = policy.scaleMs;
    state.endsAtMs = atMs + waitFor(state.deficit, policy);
    found.remaining = remainingOf(policy, state.deficit);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /** In the unit of the counter itself: the rule's numbers may have changed since the charge. */
  refund(state: BucketState, _policy: BucketPolicy, { cost, chargedAtMs }: Refund): void {
    if (chargedAtMs >= state.bornMs) lower(state, cost * state.scaleMs);
  },

  giveBack(state: BucketState, policy: BucketPolicy, { cost, nowMs }: GivenBack): boolean {
    const owes = deficitAt(state, policy, clockOf(state, policy, nowMs)) > 0;
    lower(state, cost * state.scaleMs);
    return owes;
  },

  describe: ({ deficit, scaleMs, lastMs }: BucketState) => ({ missing: scaleMs > 0 ? deficit / scaleMs : 0, lastMs }),
};

/** How much the bucket lacks, and has been given back so far. A hold keeps it, for `repayBucket`. */
export function owedBy({ deficit, given }: BucketState): number {
  return deficit + given;
}

/**
 * Gives back units that a reservation held and did not use. Since the charge the bucket may have been nearly full; what came later must
 * stay charged. So no more than it can have lacked at any time since: what it lacked then, less refill and all that was given back.
 * `given`: before the first part of this reservation was, for its parts came one behind the other.
 */
export function repayBucket(
  state: BucketState,
  policy: BucketPolicy,
  { cost, nowMs, chargedAtMs, owed, given }: Record<"cost" | "nowMs" | "chargedAtMs" | "owed" | "given", number>,
): void {
  if (chargedAtMs < state.bornMs || state.scaleMs !== policy.scaleMs) return;
  // A charge after a reset in the same millisecond has a fraction.
  const sinceMs = Math.max(nowMs, state.lastMs) - Math.floor(chargedAtMs);
  const least = owed - given - sinceMs * policy.amount;
  lower(state, Math.min(cost * state.scaleMs, Math.max(0, least)));
}
