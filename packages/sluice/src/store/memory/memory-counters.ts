/**
 * The counters of the memory store, computed by the models of `algorithms/`: found by key, charged, and marked once they are used up. In: a
 * counter's key, its plan and the time. Out: its state. Every charge of the store is made here.
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

  /** `onAdd`: called when the store gets a counter. */
  constructor(states: CounterMap, onAdd: () => void) {
    this.#states = states;
    this.#onAdd = onAdd;
  }

  /** A state that has expired is gone, swept or not, like an expired key in Redis, which still lives during the millisecond of its end. */
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
    // A state that ends before now was made by the look: it is not in the map, or it expired there.
    const isNew = state.endsAtMs <= nowMs;
    const before = sizedPart(policy.stored, state);
    if (verdict.delayMs === 0) models[policy.stored].charge(state, policy, charge, verdict);
    else chargeLater(state, policy, charge, verdict);
    verdict.charged = true;
    if (isNew) this.add(key, state, nowMs);
    else if (before !== sizedPart(policy.stored, state)) this.#states.measure(key, state, nowMs);
    if (mode === "enforce") this.#states.mark(key, state, verdict.remaining <= 0, nowMs);
  }

  /**
   * Call after a look that refused. If a rule's window grew, its count must not vanish at the old end: a refusal extends the state's life
   * to what its own numbers require. A block that the refusal begins or meets is stored separately and does not extend it.
   */
  outlive(state: State, { resetAfterMs }: Verdict, nowMs: number): void {
    state.endsAtMs = Math.max(state.endsAtMs, nowMs + resetAfterMs);
  }

  /** Call after a verdict that refuses. A cost that no counter could hold says nothing about this counter. */
  refused({ plan, key }: Check, verdict: Verdict, state: State, nowMs: number): void {
    if (plan.mode === "enforce" && verdict.reason !== "cost-exceeds-limit") this.#states.mark(key, state, true, nowMs);
  }
}

/** Charges at the time of a turn: nothing is left until then. */
function chargeLater(state: State, policy: Policy, charge: Charge, verdict: Verdict): void {
  models[policy.stored].charge(state, policy, { ...charge, nowMs: charge.nowMs + verdict.delayMs }, verdict);
  verdict.remaining = Math.min(verdict.remaining, 0);
  verdict.resetAfterMs += verdict.delayMs;
}
