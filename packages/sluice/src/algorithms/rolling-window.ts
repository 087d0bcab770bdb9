/**
 * Rolling window, exact (paper, Algorithms 3 and 4), with a minimum interval. Twins: rolling-window.lua (sorted set) and
 * rolling-window-packed.lua (ring of slots); both storages have this one meaning. Keeps the arrival of every charged unit in a ring that
 * grows up to the limit.
 *
 * Only a charge can exceed the limit. Of the units then in the window, the newest stay in the ring, as many as the limit; the older ones
 * become the debt, a number with the arrival of its newest unit. Verdicts stay exact, because while any of the debt is in the window, so is
 * the whole ring, and that alone refuses. A counter takes no more memory, whatever is charged.
 */
import { NEVER_MS } from "../decision.js";
import {
  type Charge,
  type GivenBack,
  MOST_UNITS,
  type Model,
  type Refund,
  type State,
  type Verdict,
  verdict,
} from "./model.js";
import type { RollingWindowPolicy } from "./policy.js";

/** Units older than those in the ring. All of them leave together with the newest. */
interface Debt {
  units: number;
  atMs: number;
  /** The arrival of the oldest unit that can be refunded: an earlier charge is not in here, or has saturated the counter. */
  fromMs: number;
}

export interface RollingWindowState extends State {
  /** Arrivals in ms, starting with the oldest at `head`, never decreasing. */
  ring: Float64Array;
  head: number;
  count: number;
  debt: Debt | undefined;
}

/** A sorted set has an entry per unit, and all other clients wait while Redis writes them: some milliseconds for this many. */
export const MOST_ENTRIES = 5_000;

const EMPTY = new Float64Array(0);

/** The ring index of the i-th oldest entry. A modulo would cost as much as the rest of a look. */
function indexOf({ ring, head }: RollingWindowState, i: number): number {
  const at = head + i;
  return at < ring.length ? at : at - ring.length;
}

function arrival(state: RollingWindowState, i: number): number {
  return state.ring[indexOf(state, i)]!;
}

export function newestOf(state: RollingWindowState): number {
  if (state.count > 0) return arrival(state, state.count - 1);
  return state.debt === undefined ? 0 : state.debt.atMs;
}

/** How many of the oldest entries have left a window that began after `cutoffMs`. */
function countDead(state: RollingWindowState, cutoffMs: number): number {
  let low = 0;
  let high = state.count;
  // Nearly always none has left, or only the oldest; bisection is for a key that returns after a pause.
  if (high === 0 || arrival(state, 0) > cutoffMs) return 0;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (arrival(state, middle) > cutoffMs) high = middle;
    else low = middle + 1;
  }
  return low;
}

function liveDebt({ debt }: RollingWindowState, cutoffMs: number): number {
  return debt !== undefined && debt.atMs > cutoffMs ? debt.units : 0;
}

/** The key's own clock. */
function clockOf(state: RollingWindowState, policy: RollingWindowPolicy, nowMs: number): number {
  return newestOf(state) <= nowMs ? nowMs : clockAhead(state, policy, nowMs);
}

function clockAhead(state: RollingWindowState, policy: RollingWindowPolicy, nowMs: number): number {
  const { windowMs, maxWaitMs = 0 } = policy;
  const newestMs = newestOf(state);
  if (newestMs - nowMs <= windowMs + maxWaitMs) return newestMs;
  // All entries lie within a window of the newest, so all of them are ahead: they count as now.
  const cutoffMs = newestMs - windowMs;
  const units = state.count - countDead(state, cutoffMs) + liveDebt(state, cutoffMs);
  state.ring = EMPTY;
  state.head = 0;
  state.count = 0;
  state.debt = { units, atMs: nowMs, fromMs: nowMs };
  state.endsAtMs = nowMs + windowMs;
  return nowMs;
}

function dropDead(state: RollingWindowState, cutoffMs: number): void {
  const dead = countDead(state, cutoffMs);
  if (dead > 0) dropOldest(state, dead);
  if (state.debt !== undefined && state.debt.atMs <= cutoffMs) state.debt = undefined;
}

function dropOldest(state: RollingWindowState, n: number): void {
  state.head = indexOf(state, n);
  state.count -= n;
}

/**
 * Turns the oldest units into debt until `room` are left: those of the ring first, then those arriving now. Returns how many of the latter.
 */
function intoDebt(
  state: RollingWindowState,
  { cost, room, atMs }: { cost: number; room: number; atMs: number },
): number {
  const n = state.count + cost - room;
  const ofRing = Math.min(n, state.count);
  const debt = state.debt ?? { units: 0, atMs: 0, fromMs: ofRing > 0 ? arrival(state, 0) : atMs };
  debt.units += n;
  if (debt.units > MOST_UNITS - room) {
    debt.units = MOST_UNITS - room;
    debt.fromMs = atMs + 1;
  }
  debt.atMs = ofRing < n ? atMs : arrival(state, ofRing - 1);
  state.debt = debt;
  if (ofRing > 0) dropOldest(state, ofRing);
  return n - ofRing;
}

function takeFromDebt(state: RollingWindowState, n: number): number {
  if (state.debt === undefined) return 0;
  const taken = Math.min(n, state.debt.units);
  state.debt.units -= taken;
  if (state.debt.units === 0) state.debt = undefined;
  return taken;
}

/**
 * A counter whose clock is ahead keeps that clock as an empty debt when its last unit goes: a reset sets the clock ahead for the rest of
 * its millisecond, and a refund of a charge from before the reset must not match one from after it.
 */
function keepClock(state: RollingWindowState, newestMs: number, nowMs: number): void {
  if (state.count > 0 || (state.debt?.units ?? 0) > 0) return;
  state.debt = newestMs > nowMs ? { units: 0, atMs: newestMs, fromMs: newestMs } : undefined;
}

function makeRoom(state: RollingWindowState, needed: number, limit: number): void {
  if (needed <= state.ring.length) return;
  const ring = new Float64Array(Math.max(needed, Math.min(limit, needed * 2)));
  const toEnd = state.ring.subarray(state.head, state.head + state.count);
  ring.set(toEnd);
  ring.set(state.ring.subarray(0, state.count - toEnd.length), toEnd.length);
  state.ring = ring;
  state.head = 0;
}

export const rollingWindow: Model<RollingWindowPolicy, RollingWindowState> = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, ring: EMPTY, head: 0, count: 0, debt: undefined }),

  look(state: RollingWindowState, policy: RollingWindowPolicy, cost: number, nowMs: number, strict?: boolean): Verdict {
    const { limit, windowMs, minIntervalMs } = policy;
    const atMs = clockOf(state, policy, nowMs);
    const newestMs = newestOf(state);
    const dead = countDead(state, atMs - windowMs);
    const debt = liveDebt(state, atMs - windowMs);
    const count = state.count - dead + debt;
    const remaining = limit - count;
    const resetAfterMs = count > 0 ? newestMs + windowMs - nowMs : 0;
    if (cost === 0 && !strict) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cost > limit) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    const tooClose = cost > 0 && count > 0 && atMs - newestMs < minIntervalMs;
    const intervalWaitMs = tooClose ? newestMs + minIntervalMs - nowMs : 0;
    if (count + cost > limit) {
      const excess = count + cost - limit;
      const arrivedMs = excess > debt ? arrival(state, dead + excess - debt - 1) : state.debt!.atMs;
      return verdict(false, remaining, Math.max(intervalWaitMs, arrivedMs + windowMs - nowMs), resetAfterMs, "limit");
    }
    if (tooClose) return verdict(false, remaining, intervalWaitMs, resetAfterMs, "min-interval");
    return verdict(true, remaining, 0, resetAfterMs, undefined);
  },

  charge(state: RollingWindowState, policy: RollingWindowPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    const { stored, limit, windowMs } = policy;
    const atMs = clockOf(state, policy, nowMs);
    dropDead(state, atMs - windowMs);
    const room = stored === "rolling-window" && cost > MOST_ENTRIES ? 0 : limit;
    let entries = cost;
    if (state.count + cost > room) entries -= intoDebt(state, { cost, room, atMs });
    makeRoom(state, state.count + entries, limit);
    for (let i = 0; i < entries; i++) {
      state.ring[indexOf(state, state.count)] = atMs;
      state.count++;
    }
    state.endsAtMs = atMs + windowMs;
    found.remaining = limit - state.count - (state.debt?.units ?? 0);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /** Entries of one millisecond are identical, so any of them may go. Later entries move up. */
  refund(state: RollingWindowState, _policy: RollingWindowPolicy, { cost, nowMs, chargedAtMs }: Refund): void {
    if (chargedAtMs < state.bornMs) return;
    const newestMs = newestOf(state);
    // A charge after a reset in the same millisecond has a fraction.
    const arrivedMs = Math.floor(chargedAtMs);
    let last = state.count - 1;
    while (last >= 0 && arrival(state, last) > arrivedMs) last--;
    let first = last;
    while (first >= 0 && last - first < cost && arrival(state, first) === arrivedMs) first--;
    const taken = last - first;
    for (let i = last + 1; i < state.count; i++) {
      state.ring[indexOf(state, i - taken)] = arrival(state, i);
    }
    state.count -= taken;
    const { debt } = state;
    if (debt !== undefined && arrivedMs >= debt.fromMs && arrivedMs <= debt.atMs) takeFromDebt(state, cost - taken);
    keepClock(state, newestMs, nowMs);
  },

  giveBack(state: RollingWindowState, policy: RollingWindowPolicy, { cost, nowMs }: GivenBack): boolean {
    const cutoffMs = clockOf(state, policy, nowMs) - policy.windowMs;
    const live = state.count - countDead(state, cutoffMs);
    const newestMs = newestOf(state);
    const taken = Math.min(cost, live);
    state.count -= taken;
    const ofDebt = liveDebt(state, cutoffMs) > 0 ? takeFromDebt(state, cost - taken) : 0;
    keepClock(state, newestMs, nowMs);
    return taken + ofDebt > 0;
  },

  describe: (state: RollingWindowState) => ({
    count: state.count + (state.debt?.units ?? 0),
    lastMs: newestOf(state),
  }),
};
