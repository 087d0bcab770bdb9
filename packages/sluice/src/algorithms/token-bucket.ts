/**
 * Token bucket (paper, Algorithm 1). Twin: token-bucket.lua. The bucket is stored as its deficit, in units of 1/scaleMs token: refill is
 * then a whole number of units per millisecond, and nothing drifts, however many operations there are.
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
import type { BucketPolicy, Policy } from "./policy.js";

export interface BucketState extends State {
  deficit: number;
  lastMs: number;
  /** The unit of `deficit`; differs from the policy's after the rule's numbers changed. */
  scaleMs: number;
  /** With `scaleMs`: the rate that refilled the bucket until `lastMs`, as far back as charges can be refunded. */
  amount: number;
  /** What has been given back since the bucket was full, in the unit of `deficit`. */
  given: number;
  /** When, since then, units were last given back without naming a charge. */
  namelessMs: number;
  /** Which charges the latest of these units belonged to. */
  gaps: readonly Gap[];
}

/** Units that were given back, and the charge they belonged to. */
interface Gap {
  readonly atMs: number;
  readonly owed: number;
  readonly units: number;
}

/** For this many the place in line is known; what was given back before counts as if it had been in front of every charge. */
const MOST_GAPS = 8;
const NO_GAPS: readonly Gap[] = [];

/** As far back as the stored form can express: four bytes, with one value reserved for a bucket that its last charge saturated. */
export const OLDEST_BIRTH_MS = 2 ** 32 - 2;

/**
 * A bucket is saturated well below the bound of the others: its unit is a fraction of a token, and beyond 2^53 of these a charge is
 * rounded. At this many tokens it is exact to a thousandth of a token; at 2^53 tokens, the charges and refunds of others would leave
 * nothing but noise in the counter.
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

/** The key's own clock. Rare work is in separate functions, here and below: V8 inlines short functions, and these run for every check. */
function clockOf(state: BucketState, policy: BucketPolicy, nowMs: number): number {
  return state.lastMs <= nowMs ? nowMs : clockAhead(state, policy, nowMs);
}

/** How long an empty bucket takes to fill. */
export function fillTime(policy: BucketPolicy): number {
  return waitFor(policy.capacity * policy.scaleMs, policy);
}

/**
 * The refill of the time that the clock goes back has reached the charges anyway. It counts as given back from the front of the line, and
 * without a name, because charges of that time are stamped ahead of the refill that pays for them. If the bucket was refilled at another
 * rate than this policy's, it is unknown what the refill has paid for: then no charge so far can be refunded.
 */
function clockAhead(state: BucketState, policy: BucketPolicy, nowMs: number): number {
  if (state.lastMs - nowMs <= fillTime(policy) + (policy.maxWaitMs ?? 0)) return state.lastMs;
  if (isRefilledBy(state, policy)) {
    state.given += (state.lastMs - nowMs) * policy.amount;
    state.namelessMs = Math.max(state.namelessMs, state.lastMs);
    state.bornMs = Math.min(state.bornMs, nowMs + 1);
  } else state.bornMs = nowMs + 1;
  state.lastMs = nowMs;
  state.endsAtMs = nowMs + waitFor(deficitAt(state, policy, nowMs), policy);
  return nowMs;
}

function deficitAt(state: BucketState, policy: BucketPolicy, atMs: number): number {
  const deficit = state.scaleMs === policy.scaleMs ? state.deficit : rescaled(state, policy);
  return Math.max(0, deficit - (atMs - state.lastMs) * policy.amount);
}

/** Whether the rule has had this rate ever since the first charge that can be refunded. */
function isRefilledBy(state: BucketState, { amount, scaleMs }: BucketPolicy): boolean {
  return state.amount === amount && state.scaleMs === scaleMs;
}

/** The rule's numbers changed: the missing tokens are the same, counted in another unit. */
function rescaled({ deficit, scaleMs }: BucketState, policy: BucketPolicy): number {
  return deficit === 0 ? 0 : Math.ceil((deficit / scaleMs) * policy.scaleMs);
}
function remainingOf(policy: BucketPolicy, deficit: number): number {
  return Math.min(policy.capacity, Math.floor((policy.capacity * policy.scaleMs - deficit) / policy.scaleMs));
}

function lower(state: BucketState, units: number): number {
  const given = Math.min(units, state.deficit);
  state.deficit -= given;
  state.given += given;
  return given;
}

export const tokenBucket: Model<BucketPolicy, BucketState> = {
  fresh: () => ({
    endsAtMs: 0,
    bytes: 0,
    isUsedUp: false,
    bornMs: 0,
    deficit: 0,
    lastMs: 0,
    scaleMs: 0,
    amount: 0,
    given: 0,
    namelessMs: 0,
    gaps: NO_GAPS,
  }),

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
    // As from a full bucket: what refill at another rate has paid for is unknown, even after the rule was edited back.
    const isNew = deficit === 0 || !isRefilledBy(state, policy);
    state.bornMs = Math.max(state.bornMs, isNew ? atMs : atMs - OLDEST_BIRTH_MS);
    if (state.given > 0) keepGiven(state, policy, deficit === 0 && state.namelessMs !== atMs, found);
    state.deficit = deficit + cost * policy.scaleMs;
    state.lastMs = atMs;
    if (state.deficit > MOST_BEYOND_CAPACITY * policy.scaleMs) saturate(state, policy, atMs);
    state.scaleMs = policy.scaleMs;
    state.amount = policy.amount;
    state.endsAtMs = atMs + waitFor(state.deficit, policy);
    found.remaining = remainingOf(policy, state.deficit);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  refund(state: BucketState, policy: BucketPolicy, refund: Refund): void {
    // If the bucket was refilled at another rate, it is unknown how much of the charge that paid for.
    if (refund.chargedAtMs < state.bornMs || !isRefilledBy(state, policy)) return;
    const units = lower(state, Math.min(refund.cost * state.scaleMs, unpaidOf(state, policy, refund)));
    if (units > 0) leaveGap(state, policy, refund, units);
  },

  giveBack(state: BucketState, policy: BucketPolicy, { cost, nowMs }: GivenBack): boolean {
    const atMs = clockOf(state, policy, nowMs);
    const owes = deficitAt(state, policy, atMs) > 0;
    lower(state, cost * state.scaleMs);
    const isFull = deficitAt(state, policy, atMs) === 0;
    if (state.given > 0) state.namelessMs = isFull ? atMs : Math.max(state.namelessMs, atMs);
    return owes;
  },

  describe: ({ deficit, scaleMs, lastMs }: BucketState) => ({ missing: scaleMs > 0 ? deficit / scaleMs : 0, lastMs }),
};

/**
 * What was given back counts until the bucket is full; if no charge was named, until the millisecond after, because a charge of the same
 * millisecond may be older. A full bucket also forgets it if a clock that stepped back left `namelessMs` ahead: Redis may still show a key
 * whose expiry has passed, and it must be equivalent to an absent one. The verdict carries it, for a refund of this charge. If the rule's
 * rate has changed, the places in line are no longer known.
 */
function keepGiven(state: BucketState, policy: BucketPolicy, isFull: boolean, found: Verdict): void {
  if (isFull || !isRefilledBy(state, policy)) state.gaps = NO_GAPS;
  if (isFull) {
    state.given = 0;
    state.namelessMs = 0;
    return;
  }
  if (state.scaleMs !== policy.scaleMs) state.given = Math.ceil((state.given / state.scaleMs) * policy.scaleMs);
  tellGiven(found, state);
}

/**
 * Call after a charge. Omitted if it is beyond what a number holds exactly: a refund then assumes that everything was given back after the
 * charge.
 */
export function tellGiven(found: Verdict, { given }: Pick<BucketState, "given">): void {
  if (given > 0 && given <= MOST_UNITS) found.given = given;
}

/**
 * A lower bound on how much of a charge the refill has not paid for yet. Refill pays for charges in order of arrival (FIFO): later charges
 * of others wait behind this one, so giving back its unpaid part frees nothing of theirs. Two bounds hold:
 * - the charge was at the end of a line of `owed`; refill, and refunds of charges in front of it, have brought that end nearer by as
 *   much;
 * - no more than the refill since then can have reached this charge, whatever was removed from the front. Units given back without a name
 *   may have
 *   been this charge's own, so this bound does not hold for charges made before that.
 */
function unpaidOf(
  state: BucketState,
  policy: BucketPolicy,
  { cost, nowMs, chargedAtMs, owed = 0, wholeCost = cost }: Refund,
): number {
  // A charge after a reset in the same millisecond has a fraction.
  const atMs = Math.floor(chargedAtMs);
  const sinceMs = Math.max(nowMs, state.lastMs) - atMs;
  // Charged by a clock that was ahead: the real time is unknown.
  if (sinceMs < 0) return 0;
  let fromFront = state.given;
  for (const gap of state.gaps) if (isBehind(gap, { atMs, owed }, policy)) fromFront -= gap.units;
  const refilled = sinceMs * policy.amount;
  const ofWhole = atMs > state.namelessMs ? wholeCost * state.scaleMs : 0;
  return Math.max(0, owed - fromFront - refilled, ofWhole - refilled);
}

type Place = Omit<Gap, "units">;

/** Whether it is certainly behind: a place is known to within a millisecond of refill. */
function isBehind(gap: Place, { atMs, owed }: Place, { amount }: BucketPolicy): boolean {
  return gap.owed - owed + (gap.atMs - atMs) * amount >= amount;
}

/** Gaps that the refill has reached are in front of everything unpaid, so they need no place. */
function leaveGap(state: BucketState, policy: BucketPolicy, refund: Refund, units: number): void {
  const { cost, wholeCost = cost, owed = 0, nowMs, chargedAtMs } = refund;
  const clockMs = Math.max(nowMs, state.lastMs);
  const gaps = state.gaps.filter((gap) => gap.owed > (clockMs - gap.atMs) * policy.amount);
  // If a charge stands in part, its front was given back: the rest ends where the whole ended.
  gaps.push({ atMs: Math.floor(chargedAtMs), owed: owed - (wholeCost - cost) * state.scaleMs, units });
  const inside = withoutEnd(state, policy, gaps);
  state.gaps = inside.length > MOST_GAPS ? withoutFront(inside, policy) : inside;
}

/**
 * A gap at the end of the line has nobody behind it: the line ends where the gap began, and nothing is kept of it. So undos, which mostly
 * concern the newest charge, leave no trace. Any charge behind it would be one unit or more.
 */
function withoutEnd(state: BucketState, policy: BucketPolicy, gaps: readonly Gap[]): readonly Gap[] {
  const isAtEnd = (gap: Gap): boolean => {
    const behind = state.deficit + state.given - gap.owed + (state.lastMs - gap.atMs) * policy.amount;
    return behind >= 0 && behind < state.scaleMs;
  };
  const atEnd = gaps.find(isAtEnd);
  if (atEnd === undefined) return gaps;
  state.given -= atEnd.units;
  const inside = gaps.filter((gap) => gap !== atEnd);
  return withoutEnd(state, policy, inside);
}

function withoutFront(gaps: readonly Gap[], policy: BucketPolicy): Gap[] {
  const front = gaps.reduce((first, gap) => (isBehind(first, gap, policy) ? gap : first));
  return gaps.filter((gap) => gap !== front);
}

/** How much the bucket lacks now, plus what it has been given back so far: for a hold, which has access to the bucket. */
export function owedBy({ deficit, given, lastMs }: BucketState, policy: BucketPolicy, nowMs: number): number {
  return deficit + given + Math.max(0, lastMs - nowMs) * policy.amount;
}

/**
 * The same from the verdict of a charge, to the millisecond: the bucket lacks what is refilled until its reset. So apart from `given`, a
 * refund needs nothing that a reply does not already carry.
 */
export function owedAfter(policy: Policy, { resetAfterMs, delayMs, given = 0 }: Verdict): number {
  if (policy.stored !== "token-bucket" && policy.stored !== "gcra") return 0;
  const { amount, capacity, scaleMs } = policy;
  const lacked = (resetAfterMs - delayMs - 1) * amount + 1;
  // A turn is the instant at which a full bucket has room. A vacant turn that was taken may have others behind it, and `resetAfterMs` is
  // that of the last.
  return Math.max(0, delayMs > 0 ? Math.min(lacked, capacity * scaleMs - amount + 1) : lacked) + given;
}

/** The same for what is in front of the last units of a charge. */
export function owedInFront(policy: Policy, found: Verdict, units: number): number {
  return "capacity" in policy ? Math.max(0, owedAfter(policy, found) - units * policy.scaleMs) : 0;
}
