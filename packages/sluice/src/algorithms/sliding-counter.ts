/**
 * Sliding counter: two cells, the previous one weighted by how much of it the window still covers. Twin: sliding-counter.lua. APPROXIMATE:
 * it assumes that the previous cell's requests were evenly spread. Where that matters, use a rolling window.
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
import type { SlidingCounterPolicy } from "./policy.js";
import { OLDEST_BIRTH_MS } from "./token-bucket.js";

interface SlidingCounterState extends State {
  previous: number;
  current: number;
  /** The last admission; the cells are derived from it. */
  lastMs: number;
  /** The window of the last charge. */
  windowMs: number;
}

/** The key's own clock. */
function clockOf(state: SlidingCounterState, windowMs: number, nowMs: number): number {
  if (state.lastMs <= nowMs) return nowMs;
  if (state.lastMs - nowMs <= windowMs) return state.lastMs;
  // It is unknown where in the previous cell its requests arrived: what still counts of them counts from now on.
  state.current = Math.ceil(weighed(state, state.lastMs % windowMs, windowMs) / windowMs);
  state.previous = 0;
  state.lastMs = nowMs;
  state.windowMs = windowMs;
  // How much is left of a weighted charge is unknown: none of them can be refunded.
  state.bornMs = nowMs + 1;
  state.endsAtMs = nowMs + untilEmptyMs(state, nowMs % windowMs, windowMs);
  return nowMs;
}

/** The two cells at an instant. */
function cellsAt(state: SlidingCounterState, windowMs: number, atMs: number): { previous: number; current: number } {
  const movedMs = atMs - (atMs % windowMs) - (state.lastMs - (state.lastMs % windowMs));
  if (movedMs === 0) return state;
  return { previous: movedMs === windowMs ? state.current : 0, current: 0 };
}

/** Counts are compared multiplied by the window: whole numbers, no rounding. */
function weighed(cells: { previous: number; current: number }, elapsedMs: number, windowMs: number): number {
  return cells.previous * (windowMs - elapsedMs) + cells.current * windowMs;
}

function remainingOf(policy: SlidingCounterPolicy, weight: number): number {
  return Math.min(policy.limit, Math.floor((policy.limit * policy.windowMs - weight) / policy.windowMs));
}

function untilEmptyMs(cells: { previous: number; current: number }, elapsedMs: number, windowMs: number): number {
  if (cells.current > 0) return 2 * windowMs - elapsedMs;
  return cells.previous > 0 ? windowMs - elapsedMs : 0;
}

export const slidingCounter: Model<SlidingCounterPolicy, SlidingCounterState> = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, previous: 0, current: 0, lastMs: 0, windowMs: 0 }),

  look(
    state: SlidingCounterState,
    policy: SlidingCounterPolicy,
    cost: number,
    nowMs: number,
    strict?: boolean,
  ): Verdict {
    const { limit, windowMs } = policy;
    const atMs = clockOf(state, windowMs, nowMs);
    const aheadMs = atMs - nowMs;
    const elapsedMs = atMs % windowMs;
    const cells = cellsAt(state, windowMs, atMs);
    const weight = weighed(cells, elapsedMs, windowMs);
    const remaining = remainingOf(policy, weight);
    const emptyMs = untilEmptyMs(cells, elapsedMs, windowMs);
    const resetAfterMs = emptyMs > 0 ? emptyMs + aheadMs : 0;
    if (cost === 0 && !strict) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cost > limit) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    if (weight + cost * windowMs <= limit * windowMs) return verdict(true, remaining, 0, resetAfterMs, undefined);
    if (cells.current + cost <= limit) {
      // Enough of the previous cell slides out before the current one ends.
      const leaveMs = windowMs - Math.floor(((limit - cells.current - cost) * windowMs) / cells.previous);
      return verdict(false, remaining, Math.max(1, leaveMs - elapsedMs) + aheadMs, resetAfterMs, "limit");
    }
    // The current cell becomes the previous one, and then slides out.
    const leaveMs = windowMs - Math.floor(((limit - cost) * windowMs) / cells.current);
    return verdict(false, remaining, windowMs - elapsedMs + Math.max(0, leaveMs) + aheadMs, resetAfterMs, "limit");
  },

  charge(state: SlidingCounterState, policy: SlidingCounterPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    const { windowMs } = policy;
    const atMs = clockOf(state, windowMs, nowMs);
    const elapsedMs = atMs % windowMs;
    const { previous, current } = cellsAt(state, windowMs, atMs);
    // As from an empty counter: the cell of a charge under another window is unknown, even after the rule was edited back.
    const isNew = previous + current === 0 || state.windowMs !== windowMs;
    state.bornMs = Math.max(state.bornMs, isNew ? atMs : atMs - OLDEST_BIRTH_MS);
    state.previous = previous;
    state.current = current + cost;
    state.lastMs = atMs;
    if (state.current > MOST_UNITS) {
      state.current = MOST_UNITS;
      state.bornMs = atMs + 1;
    }
    state.windowMs = windowMs;
    state.endsAtMs = atMs + untilEmptyMs(state, elapsedMs, windowMs);
    found.remaining = remainingOf(policy, weighed(state, elapsedMs, windowMs));
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /**
   * Uses the cells as the last charge left them. A refund that advanced them to now would do so for a longer window too, if the rule is
   * edited to one: that window would find others' charges in its previous cell, or gone.
   */
  refund(state: SlidingCounterState, { windowMs }: SlidingCounterPolicy, { cost, chargedAtMs }: Refund): void {
    if (windowMs !== state.windowMs || chargedAtMs < state.bornMs) return;
    // Charged by a clock that was ahead: it counts with its weight from when the counter was moved to now.
    if (chargedAtMs >= state.lastMs + 1) return;
    const startMs = state.lastMs - (state.lastMs % windowMs);
    if (chargedAtMs >= startMs) state.current = Math.max(0, state.current - cost);
    else if (chargedAtMs >= startMs - windowMs) state.previous = Math.max(0, state.previous - cost);
  },

  giveBack(state: SlidingCounterState, { windowMs }: SlidingCounterPolicy, { cost, nowMs }: GivenBack): boolean {
    const atMs = clockOf(state, windowMs, nowMs);
    const elapsedMs = atMs % windowMs;
    const { previous, current } = cellsAt(state, windowMs, atMs);
    const ofCurrent = Math.min(cost, current);
    if (state.windowMs !== windowMs) state.bornMs = Math.max(state.bornMs, atMs);
    state.previous = Math.max(0, previous - (cost - ofCurrent));
    state.current = current - ofCurrent;
    state.lastMs = atMs;
    state.windowMs = windowMs;
    state.endsAtMs = atMs + untilEmptyMs(state, elapsedMs, windowMs);
    return previous + current > 0;
  },

  describe: ({ previous, current, lastMs }: SlidingCounterState) => ({ previous, current, lastMs }),
};
