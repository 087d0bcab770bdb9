/** The vacant turns of the memory store (`algorithms/turns.ts`): stored among its counters, each list beside its counter. */
import type { State, Verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import {
  addVacant,
  callerWait,
  findTurn,
  freshVacant,
  isBucket,
  MOST_VACANT_SEEN,
  mattersUntil,
  RESET_KNOWN_MS,
  tailOf,
  takeVacant,
  type VacantState,
  type VacantTurn,
} from "../../algorithms/turns.js";
import type { Check } from "../../check.js";
import { turnsKey } from "../../keys.js";
import type { CounterMap } from "./counter-map.js";

export class MemoryTurns {
  readonly #states: CounterMap;
  /** For the request being decided, by the indices of its checks. */
  readonly #chosen: (VacantTurn | undefined)[] = [];

  constructor(states: CounterMap) {
    this.#states = states;
  }

  /** Gives vacant turns whose time has come back to their counter. Call before a look. */
  settle({ plan, key }: Check, state: State, nowMs: number): void {
    const vacant = this.#find(key, nowMs);
    if (vacant === undefined) return;
    const { policy } = plan;
    const seen = vacant.turns.slice(0, MOST_VACANT_SEEN);
    const passed = seen.filter(({ atMs }) => atMs <= nowMs);
    if (passed.length === 0) return;
    vacant.turns = vacant.turns.slice(passed.length);
    this.#keep(key, vacant, nowMs);
    if (isBucket(policy)) return;
    for (const { atMs, cost, name } of passed) {
      models[policy.stored].refund(state, policy, { cost, nowMs, chargedAtMs: atMs, requestId: name });
    }
  }

  /** Finds the turn of a check that does not fit now. `at`: its index in the request. */
  find({ plan, key, cost, charge }: Check, at: number, found: Verdict, state: State, nowMs: number): void {
    const { policy, maxWaitMs } = plan;
    const turns = this.#find(key, nowMs)?.turns ?? [];
    // `settle` leaves passed ones if there are many.
    const first = turns.findIndex(({ atMs }) => atMs > nowMs);
    this.#chosen[at] = findTurn(found, {
      // A charge counts at once and does not wait.
      cost: charge === true ? 0 : cost,
      nowMs,
      tailMs: tailOf(state, policy),
      vacant: first < 0 ? [] : turns.slice(first, first + MOST_VACANT_SEEN),
      maxWaitMs: callerWait(policy, maxWaitMs),
    });
  }

  /** Takes the vacant turn that was found for a check; false if there is none, so the check must be charged. */
  take({ key, cost }: Check, at: number, nowMs: number): boolean {
    const turn = this.#chosen[at];
    if (turn === undefined) return false;
    const vacant = this.#find(key, nowMs)!;
    takeVacant(vacant, turn, cost);
    this.#keep(key, vacant, nowMs);
    return true;
  }

  /** Gives back a charge of a counter with turns; false if that is an ordinary refund. */
  giveBack(
    { plan, key, cost }: Check,
    { atMs, bookedMs, name }: { atMs: number; bookedMs: number; name: string },
    state: State,
    nowMs: number,
  ): boolean {
    const { policy } = plan;
    const tailMs = tailOf(state, policy);
    const known = this.#find(key, nowMs);
    if (known !== undefined && bookedMs < known.resetAtMs) return true;
    // With turns booked after the charge, a bucket would become fuller than their spacing allows.
    if (atMs <= nowMs) return isBucket(policy) && tailMs > nowMs;
    // A turn beyond the last one is not in this counter: it was lost.
    if (tailMs < atMs) return true;
    const vacant = known ?? freshVacant();
    vacant.endsAtMs = Math.max(vacant.endsAtMs, mattersUntil(policy, atMs));
    addVacant(vacant, { atMs, cost, name });
    this.#keep(key, vacant, nowMs);
    return true;
  }

  /** The counter starts over. `key`: of its vacant turns. */
  reset(key: string, resetAtMs: number, nowMs: number): void {
    this.#states.delete(key);
    const vacant: VacantState = { ...freshVacant(), resetAtMs, endsAtMs: nowMs + RESET_KNOWN_MS };
    this.#states.set(key, vacant, nowMs);
  }

  #find(key: string, nowMs: number): VacantState | undefined {
    const state = this.#states.get(turnsKey(key)) as VacantState | undefined;
    return state !== undefined && state.endsAtMs > nowMs ? state : undefined;
  }

  #keep(key: string, vacant: VacantState, nowMs: number): void {
    this.#states.delete(turnsKey(key));
    if (vacant.turns.length > 0 || vacant.resetAtMs > 0) this.#states.set(turnsKey(key), vacant, nowMs);
  }
}
