/**
 * Rolling window, exact (paper, Algorithms 3 and 4), with a minimum interval. Twins: rolling-window.lua (sorted set) and
 * rolling-window-packed.lua (ring of slots); the two storages have this one meaning.
 * Keeps the arrival of every admitted unit in a ring that grows up to the limit.
 */
import { NEVER_MS } from "../decision.js";
import { type Charge, type GivenBack, type Model, type Refund, type State, type Verdict, verdict } from "./model.js";
import type { RollingWindowPolicy } from "./policy.js";

export interface RollingWindowState extends State {
  /** Arrivals in ms, oldest at `head`, never decreasing. */
  ring: Float64Array;
  head: number;
  count: number;
}

const EMPTY = new Float64Array(0);

function arrival(state: RollingWindowState, i: number): number {
  return state.ring[(state.head + i) % state.ring.length]!;
}

function newestOf(state: RollingWindowState): number {
  return state.count > 0 ? arrival(state, state.count - 1) : 0;
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

function makeRoom(state: RollingWindowState, needed: number, limit: number): void {
  if (needed <= state.ring.length) return;
  const ring = new Float64Array(Math.max(needed, Math.min(limit, needed * 2)));
  for (let i = 0; i < state.count; i++) ring[i] = arrival(state, i);
  state.ring = ring;
  state.head = 0;
}

export const rollingWindow: Model<RollingWindowPolicy, RollingWindowState> = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, ring: EMPTY, head: 0, count: 0 }),

  look(state: RollingWindowState, policy: RollingWindowPolicy, cost: number, nowMs: number): Verdict {
    const { limit, windowMs, minIntervalMs } = policy;
    const newestMs = newestOf(state);
    const atMs = Math.max(nowMs, newestMs);
    const dead = countDead(state, atMs - windowMs);
    const count = state.count - dead;
    const remaining = Math.max(0, limit - count);
    const resetAfterMs = count > 0 ? newestMs + windowMs - nowMs : 0;
    if (cost === 0) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cost > limit) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    const tooClose = count > 0 && atMs - newestMs < minIntervalMs;
    const intervalWaitMs = tooClose ? newestMs + minIntervalMs - nowMs : 0;
    if (count + cost > limit) {
      const leavesMs = arrival(state, dead + count + cost - limit - 1) + windowMs;
      return verdict(false, remaining, Math.max(intervalWaitMs, leavesMs - nowMs), resetAfterMs, "limit");
    }
    if (tooClose) return verdict(false, remaining, intervalWaitMs, resetAfterMs, "min-interval");
    return verdict(true, remaining, 0, resetAfterMs, undefined);
  },

  charge(state: RollingWindowState, policy: RollingWindowPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    const atMs = Math.max(nowMs, newestOf(state));
    const dead = countDead(state, atMs - policy.windowMs);
    if (dead > 0) {
      state.head = (state.head + dead) % state.ring.length;
      state.count -= dead;
    }
    makeRoom(state, state.count + cost, policy.limit);
    for (let i = 0; i < cost; i++) {
      state.ring[(state.head + state.count) % state.ring.length] = atMs;
      state.count++;
    }
    state.endsAtMs = atMs + policy.windowMs;
    found.remaining = Math.max(0, policy.limit - state.count);
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /** Entries of one millisecond are alike, so any of them may go. What came later moves up. */
  refund(state: RollingWindowState, _policy: RollingWindowPolicy, { cost, chargedAtMs }: Refund): void {
    let last = state.count - 1;
    while (last >= 0 && arrival(state, last) > chargedAtMs) last--;
    let first = last;
    while (first >= 0 && last - first < cost && arrival(state, first) === chargedAtMs) first--;
    const taken = last - first;
    for (let i = last + 1; i < state.count; i++) {
      state.ring[(state.head + i - taken) % state.ring.length] = arrival(state, i);
    }
    state.count -= taken;
  },

  giveBack(state: RollingWindowState, { windowMs }: RollingWindowPolicy, { cost, nowMs }: GivenBack): boolean {
    const live = state.count - countDead(state, Math.max(nowMs, newestOf(state)) - windowMs);
    const taken = Math.min(cost, live);
    state.count -= taken;
    return taken > 0;
  },

  describe: (state: RollingWindowState) => ({ count: state.count, lastMs: newestOf(state) }),
};
