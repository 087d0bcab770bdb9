/**
 * The counters of the memory store, by the models of `algorithms/`: found by key, charged, and marked once they are used up.
 * In: a counter's key, its plan and the time. Out: its state; every charge of the store is made here.
 */
import type { Charge, State, Verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Policy } from "../../algorithms/policy.js";
import type { Check, CheckPlan } from "../../check.js";
import type { CounterMap } from "./counter-map.js";
import { sizedPart } from "./memory-bytes.js";

/** The part of a check that a charge needs. */
interface ChargedCounter {
  readonly key: string;
  readonly plan: Pick<CheckPlan, "policy" | "mode">;
}

export class MemoryCounters {
  readonly #states: CounterMap;
  readonly #onAdd: () => void;

  /** `onAdd`: the store holds something from now on. */
  constructor(states: CounterMap, onAdd: () => void) {
    this.#states = states;
    this.#onAdd = onAdd;
  }

  /** A state that has ended is gone, swept or not, as a key in Redis that has expired: that lives through the millisecond of its end. */
  state(key: string, nowMs: number): State | undefined {
    const state = this.#states.get(key);
    return state !== undefined && state.endsAtMs >= nowMs ? state : undefined;
  }

  add(key: string, state: State, nowMs: number): void {
    this.#states.set(key, state, nowMs);
    this.#onAdd();
  }

  charge({ plan, key }: ChargedCounter, charge: Charge, verdict: Verdict, state: State): void {
    const { policy, mode } = plan;
    const { nowMs } = charge;
    // A state that ends before now was made by the look: it is not in the map, or its end there has passed.
    const isNew = state.endsAtMs <= nowMs;
    const before = sizedPart(policy.stored, state);
    if (verdict.delayMs === 0) models[policy.stored].charge(state, policy, charge, verdict);
    else chargeLater(state, policy, charge, verdict);
    verdict.charged = true;
    if (isNew) this.add(key, state, nowMs);
    else if (before !== sizedPart(policy.stored, state)) this.#states.measure(key, state, nowMs);
    if (mode === "enforce") this.#states.mark(key, state, verdict.remaining <= 0, nowMs);
  }

  /** After a look that refused. */
  refused({ plan, key }: Check, verdict: Verdict, state: State, nowMs: number): void {
    // A rule whose window grew must not see its count vanish at the old end: a refusal makes the state live on.
    state.endsAtMs = Math.max(state.endsAtMs, nowMs + verdict.resetAfterMs);
    // A cost that no counter could bear says nothing of the counter.
    if (plan.mode === "enforce" && verdict.reason !== "cost-exceeds-limit") this.#states.mark(key, state, true, nowMs);
  }
}

/** Charges at the instant of a turn: what is left until then is nothing. */
function chargeLater(state: State, policy: Policy, charge: Charge, verdict: Verdict): void {
  models[policy.stored].charge(state, policy, { ...charge, nowMs: charge.nowMs + verdict.delayMs }, verdict);
  verdict.remaining = Math.min(verdict.remaining, 0);
  verdict.resetAfterMs += verdict.delayMs;
}
