/**
 * Held units in the memory store: what fetch.lua adds to decide.lua. Instances do not fetch from their own memory; the holders here are
 * Envoys (the service's quota service). In tests it is also the model of a store that instances share over a network.
 */
import {
  chargeTime,
  type Fetch,
  type Grant,
  type Grants,
  grant,
  grantOf,
  NO_GRANT,
  noGrants,
  type Settlement,
  settle,
  takeEnded,
} from "../../algorithms/grants.js";
import type { Charge, State, Verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import { lookAtPool, type PoolState } from "../../algorithms/pool.js";
import type { Check } from "../../check.js";
import type { StoreRequest } from "../store.js";

/** The counters of the store. */
interface Counters {
  state(check: Check, nowMs: number): State;
  charge(check: Check, charge: Charge, state: State): void;
}

export class MemoryGrants {
  readonly #counters: Counters;
  readonly #byKey = new Map<string, Grants>();
  #settlements: (Settlement | undefined)[] = [];

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  /** Runs before the request is looked at: charges expired units, and what the holder used. */
  settle({ checks, fetches }: StoreRequest, nowMs: number): void {
    this.#settlements = [];
    for (const check of checks) if (check.plan.prefetchMs > 0) this.#chargeEnded(check, nowMs);
    if (fetches === undefined) return;
    this.#settlements = checks.map((check, i) => {
      const fetch = fetches[i];
      if (fetch === undefined || check.plan.prefetchMs === 0) return undefined;
      const settlement = settle(this.#of(check), fetch);
      const requestId = `${fetch.holder}.${fetch.seq}`;
      if (settlement.spent > 0) this.#charge(check, { cost: settlement.spent, nowMs, requestId }, nowMs);
      return settlement;
    });
  }

  /** Subtracts what is held from the verdict of a look. */
  narrow(check: Check, verdict: Verdict, nowMs: number, strict = false): void {
    const { plan, cost, charge } = check;
    const grants = plan.prefetchMs > 0 ? this.#byKey.get(check.key) : undefined;
    if (grants === undefined || grants.total === 0) return;
    if (plan.policy.stored === "pool") {
      const asked = { cost: charge === true ? 0 : cost, nowMs, strict, beside: grants.total };
      const { charged: _, ...found } = lookAtPool(this.#counters.state(check, nowMs) as PoolState, plan.policy, asked);
      Object.assign(verdict, found);
      return;
    }
    const wanted = charge === true ? 0 : cost;
    let waitMs = Math.max(1, grants.endsAtMs - nowMs);
    verdict.remaining -= grants.total;
    verdict.resetAfterMs = Math.max(verdict.resetAfterMs, waitMs);
    if (!verdict.allowed || verdict.remaining >= wanted || (wanted === 0 && !strict)) return;
    // Enough would be left but for the held units: wait until some of them expire, or until entries make room next to them.
    const capacity = "capacity" in plan.policy ? plan.policy.capacity : plan.policy.limit;
    if (wanted + grants.total <= capacity) {
      const state = this.#counters.state(check, nowMs);
      const beside = models[plan.policy.stored].look(state, plan.policy, wanted + grants.total, nowMs);
      waitMs = Math.min(waitMs, beside.retryAfterMs);
    }
    verdict.allowed = false;
    verdict.retryAfterMs = waitMs;
    verdict.reason = "limit";
  }

  /** Subtracts what is held from the verdict of a charge. */
  afterCharge({ plan, key }: Check, verdict: Verdict): void {
    if (plan.prefetchMs > 0) verdict.remaining -= this.#byKey.get(key)?.total ?? 0;
  }

  /** `passes`: whether each check's charge was made, or would have been. */
  grant(
    request: StoreRequest,
    verdicts: readonly Verdict[],
    passes: (check: Check) => boolean,
    nowMs: number,
  ): (Grant | undefined)[] {
    return request.checks.map((check, i) => {
      const settlement = this.#settlements[i];
      if (settlement === undefined) return undefined;
      const fetch = request.fetches![i]!;
      const grants = this.#of(check);
      if (settlement.kind === "late") return NO_GRANT;
      if (settlement.kind === "repeated")
        return this.#withRetry(check, fetch, grantOf(grants, fetch.holder, nowMs), nowMs);
      const { policy, prefetchMs: termMs } = check.plan;
      const want = request.charge && passes(check) ? fetch.want : 0;
      const left = verdicts[i]!.remaining;
      const state = this.#counters.state(check, nowMs);
      const granted = grant(grants, { ...fetch, want }, { policy, state, termMs, left, nowMs });
      return this.#withRetry(check, fetch, granted, nowMs);
    });
  }

  /** How many counters have holders, including expired ones that were not swept yet. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Forgets keys whose grants no longer matter: they may never be asked for again. */
  sweep(nowMs: number): void {
    for (const [key, { goneAtMs }] of this.#byKey) if (goneAtMs < nowMs) this.#byKey.delete(key);
  }

  #withRetry(check: Check, { need = 0 }: Fetch, granted: Grant, nowMs: number): Grant {
    if (need <= granted.units) return granted;
    const { plan, key } = check;
    const { policy } = plan;
    const one: Check = { plan, key, cost: 1, live: -1 };
    const found = models[policy.stored].look(this.#counters.state(check, nowMs), policy, 1, nowMs);
    this.narrow(one, found, nowMs);
    return { ...granted, retryAfterMs: found.retryAfterMs };
  }

  /** Units of a counter that holders have, including expired ones. */
  heldOf(key: string): number {
    return this.#byKey.get(key)?.total ?? 0;
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }

  #of({ key }: Check): Grants {
    let grants = this.#byKey.get(key);
    if (grants === undefined) {
      grants = noGrants();
      this.#byKey.set(key, grants);
    }
    return grants;
  }

  #chargeEnded(check: Check, nowMs: number): void {
    const grants = this.#byKey.get(check.key);
    if (grants === undefined) return;
    if (grants.goneAtMs < nowMs) {
      this.#byKey.delete(check.key);
      return;
    }
    const { units, atMs } = takeEnded(grants, nowMs);
    const { policy } = check.plan;
    const chargedAtMs = units > 0 ? chargeTime(policy, this.#counters.state(check, nowMs), atMs, nowMs) : undefined;
    if (chargedAtMs !== undefined)
      this.#charge(check, { cost: units, nowMs: chargedAtMs, requestId: `h${atMs}` }, nowMs);
  }

  #charge(check: Check, charge: Charge, nowMs: number): void {
    this.#counters.charge(check, charge, this.#counters.state(check, nowMs));
  }
}
