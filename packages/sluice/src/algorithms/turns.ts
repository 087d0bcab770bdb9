/**
 * Turns in the future (`maxWait`): a request that does not fit now is charged at the first instant at which it fits, behind everything
 * already booked, if that is soon enough. There is no queue: the counter itself holds the charge, stamped ahead of now, and its own clock
 * keeps later requests behind it. Twin: turns.lua. Pure; time is an argument.
 *
 * A turn that is given back before it comes is vacant. Its charge stays in the counter, so that every window still holds, and the next
 * request that would otherwise wait longer takes it over. A vacant turn that nobody took by its time is refunded, except in a bucket, which
 * cannot tell what it would be worth by then: there it is spent.
 */
import { NEVER_MS } from "../decision.js";
import { type FixedWindowState, windowEnd, windowStart } from "./fixed-window.js";
import type { State, Verdict } from "./model.js";
import type { FixedWindowPolicy, Policy, RollingWindowPolicy } from "./policy.js";
import { newestOf, type RollingWindowState } from "./rolling-window.js";
import type { BucketState } from "./token-bucket.js";

export interface VacantTurn {
  readonly atMs: number;
  cost: number;
  /** The name of the charge in the counter. */
  readonly name: string;
}

/** The vacant turns of one counter, in the order of turns.lua: by time, then by cost and name as text. */
export interface VacantState extends State {
  turns: VacantTurn[];
  /** The counter was reset: what was booked before this instant is not in it, though its turn may come among those booked since. */
  resetAtMs: number;
}

/** How long a reset is remembered: as long as a turn may be away. */
export const RESET_KNOWN_MS = 3_600_000;

/** A decision looks at no more vacant turns than this, so that many of them cannot slow it down. */
export const MOST_VACANT_SEEN = 64;

export function freshVacant(): VacantState {
  return { endsAtMs: 0, bytes: 0, isUsedUp: false, bornMs: 0, turns: [], resetAtMs: 0 };
}

export function isBucket(policy: Policy): boolean {
  return policy.stored === "token-bucket" || policy.stored === "gcra";
}

/** The latest instant at which the counter holds a charge. The turns of a fixed window all come at its start. */
export function tailOf(state: State, policy: Policy): number {
  if (isBucket(policy)) return (state as BucketState).lastMs;
  if (policy.stored !== "fixed-window") return newestOf(state as RollingWindowState);
  return windowStart(policy, (state as FixedWindowState).lastMs);
}

/** Until when a charge at an instant matters to the counter. */
export function mattersUntil(policy: Policy, atMs: number): number {
  if (isBucket(policy)) return atMs;
  if (policy.stored === "fixed-window") return windowEnd(policy as FixedWindowPolicy, atMs);
  return atMs + (policy as RollingWindowPolicy).windowMs;
}

export interface ChargeTimes {
  readonly nowMs: number;
  readonly timesMs?: readonly number[] | undefined;
  readonly verdicts: readonly Verdict[];
}

/** When the check at an index was charged: at its turn, if that had not come yet. */
export function chargedAt({ nowMs, timesMs, verdicts }: ChargeTimes, at: number): number {
  return (timesMs?.[at] ?? nowMs) + verdicts[at]!.delayMs;
}

/** How far away a turn this caller accepts, under a policy that hands out turns up to `maxWaitMs` away. */
export function callerWait(policy: Policy, maxWaitMs: number): number {
  return "callerWaitsMs" in policy ? policy.callerWaitsMs! : maxWaitMs;
}

interface Wanted {
  readonly cost: number;
  readonly nowMs: number;
  readonly tailMs: number;
  /** Only those still to come. */
  readonly vacant: readonly VacantTurn[];
  /** 0: this request does not wait, but those that came before go first. */
  readonly maxWaitMs: number;
}

/** Turns the result of a look into a turn, or into a refusal if the turn is too far away. Returns the vacant turn to take, if any. */
export function findTurn(found: Verdict, { cost, nowMs, tailMs, vacant, maxWaitMs }: Wanted): VacantTurn | undefined {
  // What is left belongs to those already waiting.
  if (tailMs > nowMs) found.remaining = Math.min(found.remaining, 0);
  if (cost === 0) return undefined;
  const isTooEarly = found.reason === "limit" || found.reason === "min-interval";
  if (!found.allowed && (!isTooEarly || found.retryAfterMs === NEVER_MS)) return undefined;
  const waitMs = found.allowed ? Math.max(0, tailMs - nowMs) : found.retryAfterMs;
  if (waitMs === 0) return undefined;
  const fitting = vacant.find((turn) => turn.cost >= cost);
  const taken = fitting !== undefined && fitting.atMs < nowMs + waitMs ? fitting : undefined;
  const delayMs = taken === undefined ? waitMs : taken.atMs - nowMs;
  found.remaining = Math.min(found.remaining, 0);
  if (delayMs > maxWaitMs) {
    found.allowed = false;
    found.reason ??= "limit";
    found.retryAfterMs = delayMs - maxWaitMs;
    return undefined;
  }
  found.allowed = true;
  found.reason = undefined;
  found.retryAfterMs = 0;
  found.delayMs = delayMs;
  return taken;
}

export function addVacant(state: VacantState, turn: VacantTurn): void {
  const at = state.turns.findIndex((other) => comesBefore(turn, other));
  state.turns.splice(at < 0 ? state.turns.length : at, 0, turn);
}

/** Takes this many units of a vacant turn; the rest of it stays vacant. */
export function takeVacant(state: VacantState, turn: VacantTurn, cost: number): void {
  state.turns.splice(state.turns.indexOf(turn), 1);
  if (turn.cost > cost) addVacant(state, { ...turn, cost: turn.cost - cost });
}

function comesBefore(a: VacantTurn, b: VacantTurn): boolean {
  return a.atMs === b.atMs ? `${a.cost}:${a.name}` < `${b.cost}:${b.name}` : a.atMs < b.atMs;
}
