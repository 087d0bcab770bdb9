/**
 * Decides all checks of a request in memory, and charges all or none: the same steps as decide.lua. In: a request and the time. Out: a
 * verdict for each check, and whether the request passed. Knows neither ids nor a clock.
 */
import type { State, Verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import { type BucketState, tellGiven } from "../../algorithms/token-bucket.js";
import type { Check } from "../../check.js";
import type { StoreRequest } from "../store.js";
import type { MemoryBlocks } from "./memory-blocks.js";
import type { MemoryCounters } from "./memory-counters.js";
import type { MemoryGrants } from "./memory-grants.js";
import type { MemoryTurns } from "./memory-turns.js";

interface DeciderOptions {
  readonly counters: MemoryCounters;
  readonly blocks: MemoryBlocks;
  readonly turns: MemoryTurns;
}

export class MemoryDecider {
  readonly #counters: MemoryCounters;
  readonly #blocks: MemoryBlocks;
  readonly #turns: MemoryTurns;
  /** Set by the first request with a fetch. */
  grants: MemoryGrants | undefined;
  /** The states of the checks being decided. Reused, because allocating a list per request costs more than using it. */
  readonly #looked: State[] = [];
  /** For the last decided request: how many enforced checks refuse it, and the index of the last of them. */
  #refusals = 0;
  #refuser = -1;

  constructor({ counters, blocks, turns }: DeciderOptions) {
    this.#counters = counters;
    this.#blocks = blocks;
    this.#turns = turns;
  }

  /** Whether an enforced check refused the last decided request. */
  get isRefused(): boolean {
    return this.#refusals > 0;
  }

  /**
   * Makes the charges, looks at every other check, then charges all of these or none. Rare work is in separate functions: V8 inlines short
   * ones, and this one is most of a check.
   */
  decide(request: StoreRequest, nowMs: number): Verdict[] {
    const { checks, charge, entryId } = request;
    const verdicts = new Array<Verdict>(checks.length);
    const states = this.#looked;
    this.#refusals = 0;
    for (let i = 0; i < checks.length; i++) {
      if (checks[i]!.charge === true) verdicts[i] = this.#chargeInFull(request, i, nowMs);
    }
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      if (check.charge === true) continue;
      const { plan, key, cost } = check;
      const model = models[plan.policy.stored];
      const state = this.#counters.state(key, nowMs) ?? model.fresh();
      if (plan.maxWaitMs > 0) this.#turns.settle(check, state, nowMs);
      const verdict = model.look(state, plan.policy, cost, nowMs);
      if (plan.maxWaitMs > 0) this.#turns.find(check, i, verdict, state, nowMs);
      if (this.grants !== undefined) this.grants.narrow(check, verdict, nowMs);
      if (!verdict.allowed) this.#counters.outlive(state, verdict, nowMs);
      if (check.block !== undefined) this.#blocks.apply(check, verdict, charge, nowMs);
      if (!verdict.allowed) this.#refused(check, i, verdict, state, nowMs);
      verdicts[i] = verdict;
      states[i] = state;
    }
    if (!charge) return verdicts;
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i]!;
      const verdict = verdicts[i]!;
      if (check.charge === true || !verdict.allowed || check.cost === 0) continue;
      if (this.passes(check)) {
        if (verdict.delayMs > 0 && this.#turns.take(check, i, nowMs)) takeOver(verdict, states[i]!);
        else this.#counters.charge(check, { cost: check.cost, nowMs, requestId: entryId }, verdict, states[i]!);
      }
      if (verdict.charged && this.grants !== undefined) this.grants.afterCharge(check, verdict);
    }
    return verdicts;
  }

  /**
   * Whether a check of the last decided request is charged. A candidate is decided as if it replaced its live check, so that check's
   * refusal does not count against it. Concurrency is the exception: a refused request does not run, so nobody would release the places.
   */
  passes({ plan, live }: Check): boolean {
    if (this.#refusals === 0) return true;
    return this.#refusals === 1 && this.#refuser === live && plan.policy.stored !== "concurrency";
  }

  #refused(check: Check, at: number, verdict: Verdict, state: State, nowMs: number): void {
    this.#counters.refused(check, verdict, state, nowMs);
    if (check.plan.mode !== "enforce") return;
    this.#refusals++;
    this.#refuser = at;
  }

  /** The verdict is that of a look after the charge: refused if the counter is past its limit. */
  #chargeInFull(request: StoreRequest, at: number, nowMs: number): Verdict {
    const check = request.checks[at]!;
    const { plan, key } = check;
    const model = models[plan.policy.stored];
    const state = this.#counters.state(key, nowMs) ?? model.fresh();
    if (plan.maxWaitMs > 0) this.#turns.settle(check, state, nowMs);
    let found = model.look(state, plan.policy, 0, nowMs, true);
    if (request.charge && check.cost > 0) {
      this.#counters.charge(check, { cost: check.cost, nowMs, requestId: request.entryId }, found, state);
      found = model.look(state, plan.policy, 0, nowMs, true);
      takeOver(found, state);
    }
    if (plan.maxWaitMs > 0) this.#turns.find(check, at, found, state, nowMs);
    this.grants?.narrow(check, found, nowMs, true);
    if (!found.allowed) {
      this.#counters.outlive(state, found, nowMs);
      this.#refused(check, at, found, state, nowMs);
    }
    return found;
  }
}

/** For a verdict that its own charge did not update. */
function takeOver(verdict: Verdict, state: State): void {
  verdict.charged = true;
  if ("given" in state) tellGiven(verdict, state as BucketState);
}
