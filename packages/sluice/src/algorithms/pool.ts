/**
 * A region's pool: units of a global counter that the region has fetched and hands out to its requests and instances. Twin: pool.lua. It is
 * stored in the region's store like a counter, so that one script decides a request under rules of both scopes.
 *
 * To the global store, the pool is a holder of units (grants.ts): it reports what was used and what it holds, under a growing sequence
 * number. `ask` runs before such a fetch is sent, `fill` when its answer is back. Units expire `life` after the `ask`, on this store's
 * clock: that is before they expire in the global store, whatever the two clocks show. A clock that goes back ends the pool.
 */
import { NEVER_MS } from "../decision.js";
import { type Charge, type Model, type State, type Verdict, verdict } from "./model.js";
import type { PoolPolicy } from "./policy.js";

/** The numbers of a pool, in the order of pool.lua. */
export interface PoolNumbers {
  /** Not used yet, including those held by instances. Negative if charges took more than there was, until the next ask. */
  units: number;
  /** None of the units is usable from then on. */
  unitsEndMs: number;
  /** All units used since the pool started counting. */
  used: number;
  /** The next fetch is due at or below this many units, or from this instant on. */
  low: number;
  renewAtMs: number;
  /** The time of the last charge, ask or fill. */
  lastMs: number;
  /** Used since the last ask. */
  arrived: number;
  /** Until then a fetch counts as in flight. */
  fetchingUntilMs: number;
  /** Until when the global store would refuse this cost and above, as far as is known; and when it expects to allow it. */
  refusedUntilMs: number;
  refusedCost: number;
  retryAtMs: number;
  /** When the global counter is as good as new. */
  resetAtMs: number;
  seq: number;
  /** Identifies the pool: one that was lost and starts over has nothing to do with what the old one held. */
  name: number;
  /**
   * The units that the last ask reported as held, negative once it was answered; and the time of that ask, or of its answer if those units
   * had expired by then.
   */
  told: number;
  askedAtMs: number;
  /** Units per millisecond; kept for the fetcher. */
  rate: number;
  /** The region's share of the limit, by its recent use; negative if unknown. */
  share: number;
}

export interface PoolState extends State, PoolNumbers {}

/** How long an unused pool is remembered: its share answers while the global store is away. */
export const POOL_MS = 60_000;

export type GivesBack = "no" | "if-idle" | "all";

export interface PoolAsk {
  /** The name to give to a pool that is not known yet. */
  readonly name: number;
  /** Only if the last fetch was this one; 0: whichever it was; negative: the numbers are only read. */
  readonly onlySeq: number;
  /** Whether to give back what no instance holds: never, if nothing was used since the last ask, or always. */
  readonly givesBack: GivesBack;
  /** How long others leave the fetch to this caller. */
  readonly leaseMs: number;
}

/** `isMine`: this fetch may be sent; otherwise another one is in flight, or came since. `numbers`: the state after the ask. */
export interface PoolAsked {
  readonly nowMs: number;
  readonly isMine: boolean;
  readonly numbers: Readonly<PoolNumbers>;
  /** Units that instances hold, of those of the pool. */
  readonly held: number;
  /** Between the previous ask and this one; 0 ms if unknown. */
  readonly arrived: number;
  readonly elapsedMs: number;
}

/** The answer to a fetch; if there was none, only `seq` matters. */
export interface PoolFill {
  readonly seq: number;
  readonly isAnswered: boolean;
  readonly units: number;
  readonly kept: number;
  readonly unitsEndMs: number;
  /** The next fetch is due at or below this fraction of all units; negative: never. */
  readonly lowPart: number;
  readonly renewAtMs: number;
  readonly refusedForMs: number;
  readonly refusedCost: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly rate: number;
  readonly share: number;
}

/** `isCounted`: no later fetch was sent meanwhile. */
export interface PoolFilled {
  readonly nowMs: number;
  readonly isCounted: boolean;
}

function left(state: PoolState, nowMs: number): number {
  return nowMs < state.unitsEndMs && nowMs >= state.lastMs ? state.units : 0;
}

/** `beside`: units that instances hold. A refusal has no wait if it may be wrong because nobody has asked the global store yet. */
export function lookAtPool(
  state: PoolState,
  policy: PoolPolicy,
  asked: { cost: number; nowMs: number; strict?: boolean | undefined; beside: number },
): Verdict {
  const { cost, nowMs, strict, beside } = asked;
  const units = left(state, nowMs);
  const remaining = units - beside;
  const isCurrent = nowMs >= state.lastMs;
  const isFetching = isCurrent && nowMs < state.fetchingUntilMs;
  const isRefused = isCurrent && nowMs < state.refusedUntilMs && cost >= state.refusedCost;
  const isDue = !isFetching && !isRefused && (units <= state.low || nowMs >= state.renewAtMs);
  const resetAfterMs = Math.max(0, state.resetAtMs - nowMs);
  // Negative: a fetch is due.
  const reset = isDue ? -1 - resetAfterMs : resetAfterMs;
  if (cost === 0 && !strict) return verdict(true, remaining, 0, reset, undefined);
  if (cost > policy.largestCost) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
  if (remaining >= Math.max(1, cost)) return verdict(true, remaining, 0, reset, undefined);
  if (!isRefused) return verdict(false, remaining, 0, reset, "limit");
  return verdict(false, remaining, Math.max(1, state.retryAtMs - nowMs), resetAfterMs, "limit");
}

export function usePool(state: PoolState, cost: number, nowMs: number): void {
  state.units = left(state, nowMs) - cost;
  state.used += cost;
  state.arrived += cost;
  touch(state, nowMs);
}

/** A clock that went back ends the units: it is no longer known how long ago they were fetched. */
function touch(state: PoolState, nowMs: number): void {
  if (nowMs < state.lastMs) {
    state.unitsEndMs = 0;
    state.fetchingUntilMs = 0;
    state.refusedUntilMs = 0;
  }
  state.lastMs = nowMs;
  state.endsAtMs = nowMs + POOL_MS;
}

/** `heldUnits`: what instances hold. Returns whether these end with the pool: then they count as used. */
export function askForPool(
  state: PoolState,
  { name, onlySeq, givesBack, leaseMs }: PoolAsk,
  { heldUnits, nowMs }: { heldUnits: number; nowMs: number },
): { asked: PoolAsked; endsHeld: boolean } {
  const isKnown = state.seq > 0;
  // If the clock went back since the last ask, it is unknown how long ago that was, and nothing can be measured by it.
  const elapsedMs = isKnown ? Math.max(0, nowMs - state.askedAtMs) : 0;
  const { arrived } = state;
  const isFetching = nowMs >= state.lastMs && nowMs < state.fetchingUntilMs;
  if (isFetching || (onlySeq !== 0 && onlySeq !== state.seq)) {
    const asked = { nowMs, isMine: false, numbers: numbersOf(state), held: heldUnits, arrived, elapsedMs };
    return { asked, endsHeld: false };
  }
  if (!isKnown) state.name = name;
  const endsHeld = nowMs >= state.unitsEndMs || nowMs < state.lastMs;
  if (endsHeld) {
    state.used += heldUnits;
    state.units = 0;
  } else if (givesBack === "all" || (givesBack === "if-idle" && arrived === 0))
    state.units = Math.min(state.units, heldUnits);
  // The fetch reports all use to the global store, which holds the debt from now on.
  state.units = Math.max(0, state.units);
  touch(state, nowMs);
  // At least the time, so that a store that lost its last writes does not reuse a number.
  state.seq = Math.max(state.seq + 1, nowMs);
  state.told = state.units;
  state.askedAtMs = nowMs;
  state.arrived = 0;
  state.fetchingUntilMs = nowMs + leaseMs;
  const held = endsHeld ? 0 : heldUnits;
  return { asked: { nowMs, isMine: true, numbers: numbersOf(state), held, arrived, elapsedMs }, endsHeld };
}

/** False if a later fetch was sent meanwhile, which reported these units as never received; or if it was filled before. */
export function fillPool(state: PoolState, fill: PoolFill, nowMs: number): boolean {
  const { told } = state;
  if (state.seq === 0 || fill.seq !== state.seq || told < 0 || nowMs < state.lastMs) return false;
  state.fetchingUntilMs = 0;
  state.told = -1;
  touch(state, nowMs);
  if (!fill.isAnswered) return true;
  if (fill.kept < told) {
    // Units that expired on the way were counted as used: those used since the ask too, so none of them is refunded.
    state.units = 0;
    state.askedAtMs = nowMs;
    state.arrived = 0;
  }
  state.units += fill.units;
  state.unitsEndMs = fill.unitsEndMs;
  state.low = fill.lowPart < 0 ? -1 : Math.floor(state.units * fill.lowPart);
  state.renewAtMs = fill.renewAtMs;
  state.refusedUntilMs = fill.refusedForMs > 0 ? nowMs + fill.refusedForMs : 0;
  state.refusedCost = fill.refusedCost;
  state.retryAtMs = nowMs + fill.retryAfterMs;
  state.resetAtMs = nowMs + fill.resetAfterMs;
  state.rate = fill.rate;
  state.share = fill.share;
  return true;
}

function numbersOf(state: PoolState): PoolNumbers {
  const { endsAtMs: _, bytes: __, isUsedUp: ___, bornMs: ____, ...numbers } = state;
  return numbers;
}

export const pool: Model<PoolPolicy, PoolState> = {
  fresh: () => ({
    endsAtMs: 0,
    bytes: 0,
    isUsedUp: false,
    bornMs: 0,
    units: 0,
    unitsEndMs: 0,
    used: 0,
    low: 0,
    renewAtMs: 0,
    lastMs: 0,
    arrived: 0,
    fetchingUntilMs: 0,
    refusedUntilMs: 0,
    refusedCost: 0,
    retryAtMs: 0,
    resetAtMs: 0,
    seq: 0,
    name: 0,
    told: 0,
    askedAtMs: 0,
    rate: 0,
    share: -1,
  }),

  look: (state, policy, cost, nowMs, strict) => lookAtPool(state, policy, { cost, nowMs, strict, beside: 0 }),

  charge(state: PoolState, _policy: PoolPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    usePool(state, cost, nowMs);
    found.remaining = left(state, nowMs);
    const isDue = nowMs >= state.fetchingUntilMs && (found.remaining <= state.low || nowMs >= state.renewAtMs);
    const resetAfterMs = Math.max(0, state.resetAtMs - nowMs);
    found.resetAfterMs = isDue ? -1 - resetAfterMs : resetAfterMs;
  },

  /** What was reported to the global store stays used there. */
  refund(state: PoolState, _policy: PoolPolicy, { cost, nowMs, chargedAtMs }): void {
    if (chargedAtMs <= state.askedAtMs || nowMs < state.lastMs || nowMs >= state.unitsEndMs) return;
    const back = Math.min(cost, state.arrived);
    state.units += back;
    state.used -= back;
    state.arrived -= back;
  },

  giveBack: () => false,

  describe: ({ units, unitsEndMs, used }: PoolState) => ({ units, unitsEndMs, used }),
};
