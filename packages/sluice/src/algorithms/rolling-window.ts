/**
 * Rolling window, exact (paper, Algorithms 3 and 4), with a minimum interval. Twins: rolling-window.lua (sorted set) and
 * rolling-window-packed.lua (ring of slots); the two storages have this one meaning.
 * Keeps the arrival of every charged unit in a ring that grows up to the limit.
 *
 * Only a charge can pass the limit. Of the units then in the window the newest stay in the ring, as many as the limit; the older
 * ones become the debt, a number with the arrival of its newest unit. Verdicts stay exact, for while any of the debt is in the
 * window, so is the whole ring, and that alone refuses. A counter takes no more memory, whatever is charged.
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

/** Units older than those in the ring. All leave with the newest of them. */
interface Debt {
  units: number;
  atMs: number;
  /** The arrival of the oldest that can be refunded: an earlier charge is not in here, or has saturated the counter. */
  fromMs: number;
}

export interface RollingWindowState extends State {
  /** Arrivals in ms, oldest at `head`, never decreasing. */
  ring: Float64Array;
  head: number;
  count: number;
  debt: Debt | undefined;
}

/** A sorted set has an entry for each unit, and Redis writes them while everybody waits: some milliseconds for this many. */
export const MOST_ENTRIES = 5_000;

const EMPTY = new Float64Array(0);

function arrival(state: RollingWindowState, i: number): number {
  return state.ring[(state.head + i) % state.ring.length]!;
}

export function newestOf(state: RollingWindowState): number {
  if (state.count > 0) return arrival(state, state.count - 1);
  return state.debt === undefined ? 0 : state.debt.atMs;
}

/** How many of the oldest entries have left a window that began after `cutoffMs`. */
function countDead(state: RollingWindowState, cutoffMs: number): number {
  let low = 0;
  let high = state.count;
  // Nearly always none has left, or the oldest one; bisection is for the key that comes back after a pause.
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
  // All entries lie within a window of the newest, so all of them lie ahead: they count as now.
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
  state.head = (state.head + n) % state.ring.length;
  state.count -= n;
}

/** Makes the oldest units debt until `room` are left: those of the ring first, then those that arrive now. Returns how many of the latter. */
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

function makeRoom(state: RollingWindowState, needed: number, limit: number): void {
  if (needed <= state.ring.length) return;
  const ring = new Float64Array(Math.max(needed, Math.min(limit, needed * 2)));
  for (let i = 0; i < state.count; i++) ring[i] = arrival(state, i);
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
      state.ring[(state.head + state.count) % state.ring.length] = atMs;
      state.count++;
    }
    state.endsAtMs = atMs + windowMs;
    found.remaining = limit - state.count - (state.debt?.units ?? 0);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /** Entries of one millisecond are alike, so any of them may go. What came later moves up. */
  refund(state: RollingWindowState, _policy: RollingWindowPolicy, { cost, chargedAtMs }: Refund): void {
    if (chargedAtMs < state.bornMs) return;
    // A charge after a reset in the same millisecond has a fraction.
    const arrivedMs = Math.floor(chargedAtMs);
    let last = state.count - 1;
    while (last >= 0 && arrival(state, last) > arrivedMs) last--;
    let first = last;
    while (first >= 0 && last - first < cost && arrival(state, first) === arrivedMs) first--;
    const taken = last - first;
    for (let i = last + 1; i < state.count; i++) {
      state.ring[(state.head + i - taken) % state.ring.length] = arrival(state, i);
    }
    state.count -= taken;
    const { debt } = state;
    if (debt !== undefined && arrivedMs >= debt.fromMs && arrivedMs <= debt.atMs) takeFromDebt(state, cost - taken);
  },

  giveBack(state: RollingWindowState, policy: RollingWindowPolicy, { cost, nowMs }: GivenBack): boolean {
    const cutoffMs = clockOf(state, policy, nowMs) - policy.windowMs;
    const live = state.count - countDead(state, cutoffMs);
    const taken = Math.min(cost, live);
    state.count -= taken;
    const ofDebt = liveDebt(state, cutoffMs) > 0 ? takeFromDebt(state, cost - taken) : 0;
    // A counter with nothing left goes, as on Redis, and with it the clock that a reset had set ahead (a debt of 0 units).
    if (taken > 0 && state.count === 0 && state.debt?.units === 0) state.debt = undefined;
    return taken + ofDebt > 0;
  },

  describe: (state: RollingWindowState) => ({
    count: state.count + (state.debt?.units ?? 0),
    lastMs: newestOf(state),
  }),
};
