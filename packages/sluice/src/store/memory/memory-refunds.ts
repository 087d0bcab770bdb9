/** Gives units back to the counters of the memory store: those of a named charge, or any. */
import type { Refund } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Check } from "../../check.js";
import type { Charged } from "../store.js";
import type { MemoryCounters } from "./memory-counters.js";
import type { MemoryTurns } from "./memory-turns.js";

export class MemoryRefunds {
  readonly #counters: MemoryCounters;
  readonly #turns: MemoryTurns;

  constructor(counters: MemoryCounters, turns: MemoryTurns) {
    this.#counters = counters;
    this.#turns = turns;
  }

  refund(charges: readonly Charged[], nowMs: number): void {
    for (const { check, atMs, bookedMs = atMs, entryId, owed } of charges) {
      const { plan, key, cost } = check;
      const state = this.#counters.state(key, nowMs);
      if (state === undefined) continue;
      if (plan.maxWaitMs > 0 && this.#turns.giveBack(check, { atMs, bookedMs, name: entryId }, state, nowMs)) continue;
      const refund: Refund = { cost, nowMs, chargedAtMs: atMs, requestId: entryId, owed };
      models[plan.policy.stored].refund(state, plan.policy, refund);
    }
  }

  /** Gives back units whichever requests charged them; false if there was nothing to give back. */
  giveBack(checks: readonly Check[], nowMs: number): boolean {
    let given = false;
    for (const { plan, key, cost } of checks) {
      const state = this.#counters.state(key, nowMs);
      if (state === undefined || cost === 0) continue;
      if (models[plan.policy.stored].giveBack(state, plan.policy, { cost, nowMs })) given = true;
    }
    return given;
  }
}
