/**
 * The memory store's fast path: a request with one check and nothing else (`sole-request.ts`), decided without allocating lists. In: the
 * request. Out: the decision that `MemoryDecider` would make; the same model charges the counter. Undefined while the store has more work
 * to do for a request.
 */
import type { Model, State } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Policy } from "../../algorithms/policy.js";
import { AtomicSoleReply, type SoleDecider, type SoleReply, type SoleRequest } from "../../sole-request.js";
import type { CounterMap } from "./counter-map.js";
import { sizedPart } from "./memory-bytes.js";
import type { MemoryCounters } from "./memory-counters.js";
import type { Clock } from "./memory-store-options.js";

interface SoleOptions {
  readonly clock: Clock;
  readonly states: CounterMap;
  readonly counters: MemoryCounters;
}

export class MemorySole implements SoleDecider {
  /** The fast path is open after this instant: the store sets it to the time of a reset, and to infinity once units are held. */
  closedUntilMs = 0;
  readonly #clock: Clock;
  readonly #states: CounterMap;
  readonly #counters: MemoryCounters;
  /** Reused for each request: no model keeps it. */
  readonly #charge = { cost: 0, nowMs: 0, requestId: "" };
  /** Cached from the last request, whose book has no other rule: looking up the model by name would slow down every check. */
  #policy: Policy | undefined;
  #model: Model<Policy, State> = models["token-bucket"];
  #grows = false;

  constructor({ clock, states, counters }: SoleOptions) {
    this.#clock = clock;
    this.#states = states;
    this.#counters = counters;
  }

  decideSole(request: SoleRequest): SoleReply | undefined {
    const nowMs = this.#clock.now();
    if (nowMs <= this.closedUntilMs) return undefined;
    const { check } = request;
    const { key, cost } = check;
    const { policy } = check.plan;
    if (policy !== this.#policy) this.#next(policy);
    const model = this.#model;
    const state = this.#state(request, nowMs) ?? model.fresh();
    const verdict = model.look(state, policy, cost, nowMs);
    if (!verdict.allowed) {
      this.#counters.outlive(state, verdict, nowMs);
      this.#counters.refused(check, verdict, state, nowMs);
    } else if (cost > 0) {
      const charge = this.#charge;
      charge.cost = cost;
      charge.nowMs = nowMs;
      // A ring may grow, and must then be measured.
      if (this.#grows) this.#counters.charge(check, charge, verdict, state);
      else {
        const isNew = state.endsAtMs <= nowMs;
        model.charge(state, policy, charge, verdict);
        verdict.charged = true;
        if (isNew) this.#counters.add(key, state, nowMs);
        const isUsedUp = verdict.remaining <= 0;
        if (isUsedUp !== state.isUsedUp) this.#states.mark(key, state, isUsedUp, nowMs);
      }
    }
    return new AtomicSoleReply(nowMs, verdict);
  }

  #state(request: SoleRequest, nowMs: number): State | undefined {
    const { counter } = request;
    if (counter !== undefined && request.departures === this.#states.departures && counter.endsAtMs >= nowMs)
      return counter;
    const state = this.#counters.state(request.check.key, nowMs);
    // A request outlives its counter: it must not retain a ring that the store has dropped and no longer counts.
    if (!this.#grows) request.counter = state;
    request.departures = this.#states.departures;
    return state;
  }

  #next(policy: Policy): void {
    this.#policy = policy;
    this.#model = models[policy.stored];
    this.#grows = sizedPart(policy.stored, this.#model.fresh()) !== undefined;
  }
}
