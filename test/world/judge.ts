/**
 * Judges a world after every event. It sees what the store did (not what it said), what clients were told, and what they did then.
 *
 * Held: the units admitted in any window stay within the limit that the decision stated; a refused request charges nothing; an id is
 * charged once; what a client was granted was charged; no counter is negative; places are never above their limit, neither at the
 * store nor among holders; local admissions stay within their shares; a reservation is settled once, at what the work cost, and a counter
 * holds the sum of what was settled and of what is held.
 */
import type { Check } from "../../packages/sluice/src/check.js";
import type { Decision } from "../../packages/sluice/src/limiter/decision.js";
import type {
  Amounts,
  ExtendReply,
  HeldCounter,
  Reserved,
  SettleReply,
} from "../../packages/sluice/src/store/reserved.js";
import {
  type LeaseRequest,
  REMEMBER_MS,
  type RefundRequest,
  type StoreReply,
  type StoreRequest,
} from "../../packages/sluice/src/store/store.js";
import { CounterOracle } from "./counter-oracle.js";
import type { Instance } from "./fleet.js";
import { Places } from "./places.js";
import type { CheckStep } from "./plan.js";
import { Settlements } from "./settlements.js";
import type { Shares } from "./shares.js";
import type { Simulation } from "./simulation.js";
import type { StoreObserver } from "./store-server.js";

interface ChargedId {
  atMs: number;
  charges: number;
  net: number;
}

interface StoredLease {
  endsAtMs: number;
  readonly places: number;
}

interface JudgeOptions {
  readonly simulation: Simulation;
  /** The store's wall clock. */
  readonly storeMs: () => number;
}

export class Judge implements StoreObserver {
  readonly places: Places;
  shares: Shares | undefined;
  readonly #simulation: Simulation;
  readonly #storeMs: () => number;
  readonly #counters = new Map<string, CounterOracle>();
  readonly #leases = new Map<string, Map<string, StoredLease>>();
  readonly #ids = new Map<string, ChargedId>();
  /** Also of a store that has lost them since. */
  readonly #everCharged = new Set<string>();
  readonly #stepsMs: number[] = [];
  #steppedBackMs = 0;
  readonly #fromHand = new WeakMap<Decision, { entryId: string; checks: readonly Check[]; stampMs: number }>();
  readonly settlements = new Settlements();
  /** Of the plan. */
  sumsHours = false;
  /** The counters whose window outlasts the run: nothing leaves them but by a settlement. */
  readonly #lasting = new Map<string, Check>();
  charges = 0;
  fromHand = 0;

  constructor({ simulation, storeMs }: JudgeOptions) {
    this.#simulation = simulation;
    this.#storeMs = storeMs;
    this.places = new Places(simulation);
  }

  storeClockStepped(byMs: number): void {
    this.#stepsMs.push(this.#nowMs() + Math.max(0, byMs));
    if (byMs < 0) this.#steppedBackMs -= byMs;
  }

  /** The store's clock, as if it had never been stepped back. */
  #nowMs(): number {
    return this.#storeMs() + this.#steppedBackMs;
  }

  decided(request: StoreRequest, reply: StoreReply): void {
    if (!request.charge || reply.repeated !== undefined) return;
    const refused = request.checks.some(
      ({ plan, charge }, i) => plan.mode === "enforce" && !charge && !reply.verdicts[i]!.allowed,
    );
    let charged = false;
    for (const [i, check] of request.checks.entries()) {
      const verdict = reply.verdicts[i]!;
      if (verdict.remaining > capacityOf(check))
        this.#fail(`${check.key} has ${verdict.remaining} left, more than its limit`);
      if (!verdict.charged) continue;
      charged = true;
      if (refused && check.plan.mode !== "candidate" && !check.charge)
        this.#fail(`a refused request charged ${check.key}`);
      this.#charge(request, reply, i);
    }
    if (charged && request.holdMs !== undefined) this.#hold(request, reply);
    for (const [i, check] of request.checks.entries()) this.#sum(check, reply.verdicts[i]!);
    if (charged) this.charges++;
    if (charged && request.id !== undefined) this.#chargeId(request.id);
  }

  #charge({ checks, entryId }: StoreRequest, reply: StoreReply, i: number): void {
    const { key, cost, plan, charge } = checks[i]!;
    const { policy } = plan;
    const atMs = this.#nowMs();
    if (policy.stored === "concurrency") {
      this.#take(key, `${entryId}.${policy.ttlMs}`, { endsAtMs: atMs + policy.ttlMs, places: cost }, policy.limit);
      return;
    }
    this.settlements.charged(key, entryId, cost);
    const oracle = this.#counters.get(key) ?? new CounterOracle();
    this.#counters.set(key, oracle);
    const mistake = oracle.charge(
      { atMs, stampMs: Math.floor(reply.timesMs?.[i] ?? reply.nowMs), entryId, units: cost, policy },
      { judged: charge !== true, stepsMs: this.#stepsMs },
    );
    if (mistake !== undefined) this.#fail(`${key}: ${mistake}`);
  }

  #hold({ checks, entryId, holdMs }: StoreRequest, { verdicts }: StoreReply): void {
    const held = checks.flatMap(({ held: isHeld, cost }, i) =>
      isHeld === undefined ? [] : [verdicts[i]!.charged ? cost : 0],
    );
    this.settlements.open(entryId, { ttlMs: holdMs!, held, nowMs: this.#storeMs() });
  }

  /** The store counts what the settlements and holds sum up to. */
  #sum(check: Check, { remaining }: StoreReply["verdicts"][number]): void {
    const { plan, key } = check;
    if (!this.sumsHours || !isLasting(plan.policy)) return;
    this.#lasting.set(key, { ...check, cost: 0 });
    const sum = this.settlements.sumOf(key);
    const counted = plan.policy.limit - remaining;
    if (counted !== sum) this.#fail(`${key} counts ${counted}, and ${sum} were settled or are held`);
  }

  /** The last settlements are seen by no later check. */
  sumAll(look: (check: Check) => StoreReply): void {
    for (const check of this.#lasting.values()) this.#sum(check, look(check).verdicts[0]!);
  }

  extended(reserved: Reserved, reply: ExtendReply): void {
    const before = reserved.counters.map(({ key, entryId }) => this.settlements.unitsOf(key, entryId));
    const mistake = this.settlements.extended(reserved, reply);
    if (mistake !== undefined) this.#fail(mistake);
    reserved.counters.forEach((counter, i) => {
      const more = (reply.held[i] ?? 0) - before[i]!;
      // Under `stop` it asks as a check does.
      if (reply.state === "open" && more > 0)
        this.#chargeMore(counter, more, !counter.finishes && counter.mode === "enforce");
    });
  }

  settled(reserved: Reserved, reply: SettleReply, amounts: Amounts): void {
    const nowMs = this.#storeMs();
    const mistake = this.settlements.settle(reserved, amounts, { reply, nowMs });
    if (mistake !== undefined) this.#fail(mistake);
    if (!reply.isNew) return;
    reserved.counters.forEach((counter, i) => {
      const { held, charged } = reply.counters[i]!;
      if (charged > held) this.#chargeMore(counter, charged - held, false);
      else this.#counters.get(counter.key)?.giveBack(counter.entryId, held - charged, this.#nowMs());
    });
  }

  #chargeMore({ key, entryId, policy }: HeldCounter, units: number, judged: boolean): void {
    const oracle = this.#counters.get(key) ?? new CounterOracle();
    this.#counters.set(key, oracle);
    const atMs = this.#nowMs();
    const mistake = oracle.charge(
      { atMs, stampMs: Math.floor(this.#storeMs()), entryId, units, policy },
      { judged, stepsMs: this.#stepsMs },
    );
    if (mistake !== undefined) this.#fail(`${key}: ${mistake}`);
  }

  #take(key: string, name: string, lease: StoredLease, limit: number): void {
    const atMs = this.#nowMs();
    const leases = this.#leases.get(key) ?? new Map<string, StoredLease>();
    this.#leases.set(key, leases.set(name, lease));
    let live = 0;
    for (const [other, { endsAtMs, places }] of leases) {
      if (endsAtMs <= atMs) leases.delete(other);
      else live += places;
    }
    if (live > limit) this.#fail(`the store granted ${live} places of ${limit} under ${key}`);
  }

  #chargeId(id: string): void {
    const atMs = this.#nowMs();
    this.#everCharged.add(id);
    let known = this.#ids.get(id);
    if (known === undefined || atMs - known.atMs >= REMEMBER_MS) known = { atMs, charges: 0, net: 0 };
    known.charges++;
    known.net++;
    this.#ids.set(id, known);
    if (known.net > 1) this.#fail(`the id ${id} is charged ${known.net} times`);
  }

  refunded({ charges, id }: RefundRequest, done: boolean): void {
    if (!done) return;
    for (const { check, atMs, entryId } of charges) {
      if (check.plan.policy.stored === "concurrency") {
        this.#leases.get(check.key)?.delete(`${entryId}.${check.plan.policy.ttlMs}`);
      } else this.#counters.get(check.key)?.refund({ stampMs: atMs, entryId, units: check.cost, atMs: this.#nowMs() });
    }
    const known = id === undefined ? undefined : this.#ids.get(id);
    if (known === undefined) return;
    known.net--;
    if (known.net < 0) this.#fail(`the id ${id} was refunded more often than charged`);
  }

  /** A decision from units in hand: the store hears of it later, or never. It counts when it is made. */
  usedFromHand(decision: Decision, checks: readonly Check[]): void {
    const entryId = `hand-${++this.fromHand}`;
    this.#fromHand.set(decision, { entryId, checks, stampMs: this.#nowMs() });
    for (const { key, cost, plan } of checks) {
      const atMs = this.#nowMs();
      const oracle = this.#counters.get(key) ?? new CounterOracle();
      this.#counters.set(key, oracle);
      const charge = { atMs, stampMs: atMs, entryId, units: cost, policy: plan.policy };
      const mistake = oracle.charge(charge, { judged: true, stepsMs: this.#stepsMs });
      if (mistake !== undefined) this.#fail(`${key}, from units in hand: ${mistake}`);
    }
  }

  /** Before the refund is done: milder by what is under way. */
  refundsFromHand(decision: Decision): void {
    const found = this.#fromHand.get(decision);
    if (found === undefined) return;
    const { entryId, checks, stampMs } = found;
    for (const { key, cost } of checks) {
      this.#counters.get(key)?.refund({ stampMs, entryId, units: cost, atMs: this.#nowMs() });
    }
  }

  released({ places }: LeaseRequest): void {
    for (const { key, entryId, ttlMs } of places) this.#leases.get(key)?.delete(`${entryId}.${ttlMs}`);
  }

  renewed(lease: LeaseRequest, leftMs: number): void {
    if (leftMs === 0) {
      this.released(lease);
      return;
    }
    for (const { key, entryId, ttlMs } of lease.places) {
      const held = this.#leases.get(key)?.get(`${entryId}.${ttlMs}`);
      if (held === undefined) this.#fail(`a lease that ended was renewed under ${key}`);
      else held.endsAtMs = this.#nowMs() + ttlMs;
    }
  }

  reset(keys: readonly string[]): void {
    for (const key of keys) {
      this.#counters.delete(key);
      this.#leases.delete(key);
    }
  }

  wiped(): void {
    this.settlements.wiped();
    this.#lasting.clear();
    this.#counters.clear();
    this.#leases.clear();
    this.#ids.clear();
  }

  /** What a client was told. */
  clientDecided(_instance: Instance, step: CheckStep, decision: Decision): void {
    const { id, charge, cost = 1 } = step;
    if (decision.degraded === "deny" && decision.allowed && charge !== true)
      this.#fail("admitted where a policy denies");
    if (decision.degraded !== undefined || !decision.allowed || id === undefined || cost === 0) return;
    if (decision.checks.length > 0 && !this.#everCharged.has(id))
      this.#fail(`the id ${id} was admitted and never charged`);
  }

  fail(message: string | undefined): void {
    if (message !== undefined) this.#fail(message);
  }

  #fail(message: string): void {
    this.#simulation.fail(message);
  }
}

function capacityOf({ plan: { policy } }: StoreRequest["checks"][number]): number {
  return "capacity" in policy ? policy.capacity : policy.limit;
}

/** Longer than a run. */
const LASTING_MS = 3_600_000;

/** Nothing but reservations is charged under it: no refund, no unit in hand. */
function isLasting(policy: Check["plan"]["policy"]): boolean {
  return (
    (policy.stored === "fixed-window" ||
      policy.stored === "rolling-window" ||
      policy.stored === "rolling-window-packed") &&
    policy.windowMs === LASTING_MS
  );
}
