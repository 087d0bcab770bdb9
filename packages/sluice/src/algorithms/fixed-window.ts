/**
 * Fixed window (paper, Algorithm 2), aligned to the epoch or to a calendar. Twin: fixed-window.lua. The window is derived from the last
 * admission instead of stored, so that a changed window keeps as much of the count as it can.
 */
import { NEVER_MS } from "../decision.js";
import { type Boundaries, boundariesAround, type Calendar } from "./calendar.js";
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
import type { FixedWindowPolicy } from "./policy.js";

export interface FixedWindowState extends State {
  count: number;
  lastMs: number;
}

/** Time zone arithmetic is slow, and its results are valid for days: the latest are cached per calendar. */
const knownBoundaries = new WeakMap<Calendar, Boundaries>();

function calendarWindow(calendar: Calendar, atMs: number): { startMs: number; endMs: number } {
  let known = knownBoundaries.get(calendar);
  if (known === undefined || atMs < known[0] || atMs >= known[4]) {
    known = boundariesAround(calendar, atMs);
    knownBoundaries.set(calendar, known);
  }
  let i = 1;
  while (atMs >= known[i]!) i++;
  return { startMs: known[i - 1]!, endMs: known[i]! };
}

export function windowStart(policy: FixedWindowPolicy, atMs: number): number {
  return policy.calendar === undefined
    ? atMs - (atMs % policy.windowMs)
    : calendarWindow(policy.calendar, atMs).startMs;
}

export function windowEnd(policy: FixedWindowPolicy, atMs: number): number {
  return policy.calendar === undefined
    ? atMs - (atMs % policy.windowMs) + policy.windowMs
    : calendarWindow(policy.calendar, atMs).endMs;
}

/** The key's own clock. Ahead by more than a window means beyond the window after the present one. */
function clockOf(state: FixedWindowState, policy: FixedWindowPolicy, nowMs: number): number {
  if (state.lastMs <= nowMs) return nowMs;
  const endMs = windowEnd(policy, nowMs);
  if (state.lastMs < windowEnd(policy, endMs) + (policy.maxWaitMs ?? 0)) return state.lastMs;
  state.lastMs = nowMs;
  state.bornMs = Math.min(state.bornMs, nowMs);
  state.endsAtMs = endMs;
  return nowMs;
}

function countAt(state: FixedWindowState, policy: FixedWindowPolicy, atMs: number): number {
  return state.count > 0 && state.lastMs >= windowStart(policy, atMs) ? state.count : 0;
}

export const fixedWindow: Model<FixedWindowPolicy, FixedWindowState> = {
  fresh: () => ({ endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, count: 0, lastMs: 0 }),

  look(state: FixedWindowState, policy: FixedWindowPolicy, cost: number, nowMs: number, strict?: boolean): Verdict {
    const atMs = clockOf(state, policy, nowMs);
    const count = countAt(state, policy, atMs);
    const remaining = policy.limit - count;
    const resetAfterMs = count > 0 ? windowEnd(policy, atMs) - nowMs : 0;
    if (cost === 0 && !strict) return verdict(true, remaining, 0, resetAfterMs, undefined);
    // A deny list: no wait helps, whatever the cost.
    if (policy.limit === 0) return verdict(false, remaining, NEVER_MS, resetAfterMs, "limit");
    if (cost > policy.limit) return verdict(false, remaining, NEVER_MS, resetAfterMs, "cost-exceeds-limit");
    if (count + cost > policy.limit)
      return verdict(false, remaining, windowEnd(policy, atMs) - nowMs, resetAfterMs, "limit");
    return verdict(true, remaining, 0, resetAfterMs, undefined);
  },

  charge(state: FixedWindowState, policy: FixedWindowPolicy, { cost, nowMs }: Charge, found: Verdict): void {
    const atMs = clockOf(state, policy, nowMs);
    const count = countAt(state, policy, atMs);
    if (count === 0) state.bornMs = Math.max(state.bornMs, atMs);
    state.count = count + cost;
    state.lastMs = atMs;
    if (state.count > MOST_UNITS) {
      state.count = MOST_UNITS;
      state.bornMs = atMs + 1;
    }
    state.endsAtMs = windowEnd(policy, atMs);
    found.remaining = policy.limit - state.count;
    found.resetAfterMs = state.endsAtMs - nowMs;
  },

  /** What was charged in an earlier window was given back when that window ended. */
  refund(state: FixedWindowState, _policy: FixedWindowPolicy, { cost, chargedAtMs }: Refund): void {
    if (chargedAtMs >= state.bornMs) state.count = Math.max(0, state.count - cost);
  },

  giveBack(state: FixedWindowState, policy: FixedWindowPolicy, { cost, nowMs }: GivenBack): boolean {
    const counted = countAt(state, policy, clockOf(state, policy, nowMs)) > 0;
    state.count = Math.max(0, state.count - cost);
    return counted;
  },

  describe: ({ count, lastMs }: FixedWindowState) => ({ count, lastMs }),
};
