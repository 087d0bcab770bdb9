/**
 * The store for one process: the models of `algorithms/`, on a bounded map. It answers at once.
 * In: requests with their checks. Out: verdicts; all of a request's checks are charged, or none.
 */
import { type ConcurrencyState, concurrency } from "../../algorithms/concurrency.js";
import { addCosts, type CostWeights } from "../../algorithms/cost-histogram.js";
import { type Charge, type Model, type Refund, type State, type Verdict, verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Policy } from "../../algorithms/policy.js";
import {
  askForPool,
  fillPool,
  type PoolAsk,
  type PoolAsked,
  type PoolFill,
  type PoolFilled,
  type PoolState,
  pool,
} from "../../algorithms/pool.js";
import { type BucketState, tellGiven } from "../../algorithms/token-bucket.js";
import type { Check, CheckPlan } from "../../check.js";
import { type Stored, storedIn } from "../../keys.js";
import { AtomicSoleReply, type SoleDecider, type SoleReply, type SoleRequest } from "../../sole-request.js";
import type { Amounts, ExtendReply, HeldCounter, ReservationState, Reserved, SettleReply } from "../reserved.js";
import {
  type BlockedKey,
  type LeaseRequest,
  otherRequest,
  type RefundRequest,
  type Store,
  type StoreReply,
  type StoreRequest,
} from "../store.js";
import { CounterMap } from "./counter-map.js";
import { MemoryBlocks } from "./memory-blocks.js";
import { sizedPart } from "./memory-bytes.js";
import { MemoryGrants } from "./memory-grants.js";
import { MemoryHolds } from "./memory-holds.js";
import { MemoryLimit, type MemoryUse } from "./memory-limit.js";
import { type Clock, checkedMaxBytes, type MemoryStoreOptions } from "./memory-store-options.js";
import { MemoryTurns } from "./memory-turns.js";
import { RequestRecords, repeated } from "./request-records.js";

const SWEEP_EVERY_MS = 1_000;
const LOOKS_PER_SWEEP = 20_000;
/** Of the bytes; the rest is for counters. */
const SHARE_OF_IDS = 1 / 4;
/** Of the ids' share: for reservations. */
const SHARE_OF_HOLDS = 1 / 4;
const RESET_STEP_MS = 2 ** -10;

const NO_COSTS: CostWeights = new Map();
/** Classes of keys whose costs are remembered: rules are few, and each has few. */
const MOST_LEARNED = 10_000;

/** The part of a check that a charge needs. */
interface Charged {
  readonly key: string;
  readonly plan: Pick<CheckPlan, "policy" | "mode">;
}

export class MemoryStore implements Store, SoleDecider {
  readonly #states: CounterMap;
  readonly #blocks: MemoryBlocks;
  readonly #turns: MemoryTurns;
  readonly #records: RequestRecords;
  readonly #holds: MemoryHolds;
  readonly #limit: MemoryLimit;
  readonly #clock: Clock;
  readonly #resetsAsRedis: boolean;
  /** The states of the checks that are being decided. Kept, because a new list for every request costs more than its use. */
  readonly #looked: State[] = [];
  /** Used again for each request of one check: no model keeps it. */
  readonly #soleCharge = { cost: 0, nowMs: 0, requestId: "" };
  /** Of the last such request: the book that it came from has no other rule. A look for the model by its name would cost every check. */
  #solePolicy: Policy | undefined;
  #soleModel: Model<Policy, State> = models["token-bucket"];
  #soleGrows = false;
  readonly #learned = new Map<string, CostWeights>();
  /** Made by the first request with a fetch. */
  #grants: MemoryGrants | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  /**
   * The last reset, in steps of a fraction of its millisecond. What is charged after it, in the same millisecond, is said to be charged
   * then: a charge from before it must not be refunded out of one from after it.
   */
  #resetAtMs = 0;
  /** Of the request that is being decided: how many enforced checks refuse it, and where the last of them stands. */
  #refusals = 0;
  #refuser = -1;

  /**
   * `resetsAsRedis`: for the replay of a recording. On Redis a counter that is reset has its clock in the next millisecond (reset.lua);
   * a sorted set knows charges by their names.
   */
  constructor(options: MemoryStoreOptions = {}, { resetsAsRedis = false } = {}) {
    const maxBytes = checkedMaxBytes(options);
    this.#resetsAsRedis = resetsAsRedis;
    const recordBytes = Math.floor(maxBytes * SHARE_OF_IDS);
    const holdBytes = Math.floor(recordBytes * SHARE_OF_HOLDS);
    this.#states = new CounterMap(maxBytes - recordBytes);
    this.#blocks = new MemoryBlocks(this.#states);
    this.#turns = new MemoryTurns(this.#states);
    this.#records = new RequestRecords(recordBytes - holdBytes);
    const state = (key: string, nowMs: number): State | undefined => this.#state(key, nowMs);
    const charge = (counter: HeldCounter, added: Charge, found: Verdict, charged: State): void =>
      this.#charge({ key: counter.key, plan: counter }, added, found, charged);
    this.#holds = new MemoryHolds({ state, charge }, holdBytes);
    this.#limit = new MemoryLimit(maxBytes, options.onMemoryLimit);
    this.#clock = options.clock ?? Date;
  }

  /** How many counters are held, ended ones that were not swept yet included. */
  get size(): number {
    return this.#states.count;
  }

  /** How many counters have holders of units. */
  get heldKeys(): number {
    return this.#grants?.size ?? 0;
  }

  memory(): MemoryUse {
    const { evictedIdle, evictedUsedUp, bytes, count } = this.#states;
    return {
      bytes: bytes + this.#records.bytes + this.#holds.bytes,
      maxBytes: this.#limit.maxBytes,
      counters: count,
      ids: this.#records.count,
      evicted: { idle: evictedIdle, usedUp: evictedUsedUp, ids: this.#records.evicted + this.#holds.evicted },
    };
  }

  decide(request: StoreRequest): StoreReply {
    const nowMs = this.#clock.now();
    return request.id === undefined ? this.#reply(request, nowMs) : this.#decideOnce(request, request.id, nowMs);
  }

  /**
   * The same for a request of one check that asks for nothing else, without its lists. Undefined where more is to be done: units are held
   * by somebody, or the millisecond is that of a reset.
   */
  decideSole(request: SoleRequest): SoleReply | undefined {
    const nowMs = this.#clock.now();
    if (this.#grants !== undefined || nowMs <= this.#resetAtMs) return undefined;
    const { check } = request;
    const { key, cost } = check;
    const { policy } = check.plan;
    if (policy !== this.#solePolicy) this.#nextSole(policy);
    const model = this.#soleModel;
    const state = this.#soleState(request, nowMs) ?? model.fresh();
    const verdict = model.look(state, policy, cost, nowMs);
    if (!verdict.allowed) this.#refused(check, 0, verdict, state, nowMs);
    else if (cost > 0) {
      const charge = this.#soleCharge;
      charge.cost = cost;
      charge.nowMs = nowMs;
      // A ring may grow, and is measured then.
      if (this.#soleGrows) this.#charge(check, charge, verdict, state);
      else {
        const isNew = state.endsAtMs <= nowMs;
        model.charge(state, policy, charge, verdict);
        verdict.charged = true;
        if (isNew) this.#add(key, state, nowMs);
        const isUsedUp = verdict.remaining <= 0;
        if (isUsedUp !== state.isUsedUp) this.#states.mark(key, state, isUsedUp, nowMs);
      }
    }
    return new AtomicSoleReply(nowMs, verdict);
  }

  #soleState(request: SoleRequest, nowMs: number): State | undefined {
    const { counter } = request;
    if (counter !== undefined && request.departures === this.#states.departures && counter.endsAtMs >= nowMs)
      return counter;
    const state = this.#state(request.check.key, nowMs);
    // A request outlives its counter: it must not keep a ring that the store has given up, and no longer counts.
    if (!this.#soleGrows) request.counter = state;
    request.departures = this.#states.departures;
    return state;
  }

  #nextSole(policy: Policy): void {
    this.#solePolicy = policy;
    this.#soleModel = models[policy.stored];
    this.#soleGrows = sizedPart(policy.stored, this.#soleModel.fresh()) !== undefined;
  }

  #decideOnce(request: StoreRequest, id: string, nowMs: number): StoreReply {
    const record = this.#records.find(id, nowMs);
    if (record !== undefined) {
      if (record.fingerprint !== request.fingerprint) throw otherRequest();
      return repeated(record, nowMs);
    }
    const reply = this.#reply(request, nowMs);
    if (request.charge) {
      this.#records.remember(id, request, reply, nowMs);
      this.#sweepLater();
    }
    return reply;
  }

  #reply(request: StoreRequest, nowMs: number): StoreReply {
    if (request.fetches !== undefined || this.#grants !== undefined) return this.#replyWithGrants(request, nowMs);
    const verdicts = this.#decide(request, nowMs);
    if (request.holdMs !== undefined) this.#hold(request, verdicts, nowMs);
    // The millisecond of the reset, or none.
    if (nowMs <= this.#resetAtMs) return this.#replyAfterReset(verdicts, nowMs);
    return { nowMs, verdicts, guarantee: "atomic" };
  }

  #replyWithGrants(request: StoreRequest, nowMs: number): StoreReply {
    this.#grants ??= new MemoryGrants({
      state: ({ key, plan }, atMs) => this.#state(key, atMs) ?? models[plan.policy.stored].fresh(),
      charge: (check, charge, state) => this.#charge(check, charge, verdict(true, 0, 0, 0, undefined), state),
    });
    this.#grants.settle(request, nowMs);
    const verdicts = this.#decide(request, nowMs);
    const passes = (check: Check): boolean => this.#refusals === 0 || this.#passesAsCandidate(check);
    const grants = request.fetches && this.#grants.grant(request, verdicts, passes, nowMs);
    if (grants !== undefined) this.#sweepLater();
    if (request.holdMs !== undefined) this.#hold(request, verdicts, nowMs);
    return { nowMs, verdicts, guarantee: "atomic", ...(grants && { grants }) };
  }

  /** What was held is remembered until it is settled, if the request passed. */
  #hold(request: StoreRequest, verdicts: readonly Verdict[], nowMs: number): void {
    if (!request.charge || this.#refusals > 0) return;
    this.#holds.open(request, verdicts, { atMs: this.#chargedAtMs(nowMs), nowMs });
    this.#sweepLater();
  }

  settle(reservation: Reserved, amounts: Amounts): SettleReply {
    return this.#holds.settle(reservation, amounts, this.#clock.now());
  }

  extend(reservation: Reserved, amounts: Amounts): ExtendReply {
    const nowMs = this.#clock.now();
    return this.#holds.extend(reservation, amounts, { atMs: this.#chargedAtMs(nowMs), nowMs });
  }

  /** Charges after a reset in the same millisecond are told from those before it by a fraction. */
  #chargedAtMs(nowMs: number): number {
    return nowMs === Math.floor(this.#resetAtMs) ? this.#resetAtMs : nowMs;
  }

  holdState(reservation: Reserved): ReservationState {
    return this.#holds.stateOf(reservation, this.#clock.now());
  }

  learn(name: string, costs: CostWeights): CostWeights {
    const learned = addCosts(this.#learned.get(name) ?? NO_COSTS, costs);
    if (this.#learned.size >= MOST_LEARNED && !this.#learned.has(name)) this.#learned.clear();
    this.#learned.set(name, learned);
    return learned;
  }

  #replyAfterReset(verdicts: Verdict[], nowMs: number): StoreReply {
    if (nowMs !== Math.floor(this.#resetAtMs)) return { nowMs, verdicts, guarantee: "atomic" };
    return { nowMs, verdicts, guarantee: "atomic", timesMs: verdicts.map(() => this.#resetAtMs) };
  }

  /**
   * Makes the charges, looks at every other check, then charges all of these or none: the same steps as decide.lua. Rare work
   * stands in functions of its own: V8 inlines short ones, and this one is most of a check.
   */
  #decide(request: StoreRequest, nowMs: number): Verdict[] {
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
      const state = this.#state(key, nowMs) ?? model.fresh();
      if (plan.maxWaitMs > 0) this.#turns.settle(check, state, nowMs);
      const verdict = model.look(state, plan.policy, cost, nowMs);
      if (plan.maxWaitMs > 0) this.#turns.find(check, i, verdict, state, nowMs);
      if (this.#grants !== undefined) this.#grants.narrow(check, verdict, nowMs);
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
      if (this.#refusals === 0 || this.#passesAsCandidate(check)) {
        if (verdict.delayMs > 0 && this.#turns.take(check, i, nowMs)) takeOver(verdict, states[i]!);
        else this.#charge(check, { cost: check.cost, nowMs, requestId: entryId }, verdict, states[i]!);
      }
      if (verdict.charged && this.#grants !== undefined) this.#grants.afterCharge(check, verdict);
    }
    return verdicts;
  }

  #refused({ plan, key }: Check, at: number, verdict: Verdict, state: State, nowMs: number): void {
    // A rule whose window grew must not see its count vanish at the old end: a refusal makes the state live on.
    state.endsAtMs = Math.max(state.endsAtMs, nowMs + verdict.resetAfterMs);
    if (plan.mode !== "enforce") return;
    this.#refusals++;
    this.#refuser = at;
    // A cost that no counter could bear says nothing of the counter.
    if (verdict.reason !== "cost-exceeds-limit") this.#states.mark(key, state, true, nowMs);
  }

  /**
   * A candidate is judged as if it stood in its live check's place: that check's refusal does not count against it. Places are the
   * exception: a request that was refused does not run, so nobody would give them back.
   */
  #passesAsCandidate({ plan, live }: Check): boolean {
    return this.#refusals === 1 && this.#refuser === live && plan.policy.stored !== "concurrency";
  }

  /** The verdict is that of a look after the charge: refused where the counter is past its limit. */
  #chargeInFull(request: StoreRequest, at: number, nowMs: number): Verdict {
    const check = request.checks[at]!;
    const { plan, key } = check;
    const model = models[plan.policy.stored];
    const state = this.#state(key, nowMs) ?? model.fresh();
    if (plan.maxWaitMs > 0) this.#turns.settle(check, state, nowMs);
    let found = model.look(state, plan.policy, 0, nowMs, true);
    if (request.charge && check.cost > 0) {
      this.#charge(check, { cost: check.cost, nowMs, requestId: request.entryId }, found, state);
      found = model.look(state, plan.policy, 0, nowMs, true);
      takeOver(found, state);
    }
    if (plan.maxWaitMs > 0) this.#turns.find(check, at, found, state, nowMs);
    this.#grants?.narrow(check, found, nowMs, true);
    if (!found.allowed) this.#refused(check, at, found, state, nowMs);
    return found;
  }

  #charge({ plan, key }: Charged, charge: Charge, verdict: Verdict, state: State): void {
    const { policy, mode } = plan;
    const { nowMs } = charge;
    // A state that ends before now was made by the look: it is not in the map, or its end there has passed.
    const isNew = state.endsAtMs <= nowMs;
    const before = sizedPart(policy.stored, state);
    if (verdict.delayMs === 0) models[policy.stored].charge(state, policy, charge, verdict);
    else chargeLater(state, policy, charge, verdict);
    verdict.charged = true;
    if (isNew) this.#add(key, state, nowMs);
    else if (before !== sizedPart(policy.stored, state)) this.#states.measure(key, state, nowMs);
    if (mode === "enforce") this.#states.mark(key, state, verdict.remaining <= 0, nowMs);
  }

  #add(key: string, state: State, nowMs: number): void {
    this.#states.set(key, state, nowMs);
    this.#sweepLater();
  }

  /** A state that has ended is gone, swept or not, as a key in Redis that has expired: that lives through the millisecond of its end. */
  #state(key: string, nowMs: number): State | undefined {
    const state = this.#states.get(key);
    return state !== undefined && state.endsAtMs >= nowMs ? state : undefined;
  }

  recall(id: string): StoreReply | undefined {
    return this.#records.recall(id, this.#clock.now());
  }

  refund({ charges, id }: RefundRequest): boolean {
    const nowMs = this.#clock.now();
    if (id !== undefined) {
      const record = this.#records.find(id, nowMs);
      // The id may have been refunded, and decided anew: that is another charge.
      if (record === undefined || record.receipt.entryId !== charges[0]!.entryId) return false;
      this.#records.delete(id);
    }
    for (const { check, atMs, entryId, owed } of charges) {
      const { plan, key, cost } = check;
      const state = this.#state(key, nowMs);
      if (state === undefined) continue;
      if (plan.maxWaitMs > 0 && this.#turns.giveBack(check, { atMs, name: entryId }, state, nowMs)) continue;
      const refund: Refund = { cost, nowMs, chargedAtMs: atMs, requestId: entryId, owed };
      models[plan.policy.stored].refund(state, plan.policy, refund);
    }
    return true;
  }

  giveBack(checks: readonly Check[]): boolean {
    const nowMs = this.#clock.now();
    let given = false;
    for (const { plan, key, cost } of checks) {
      const state = this.#state(key, nowMs);
      if (state === undefined || cost === 0) continue;
      if (models[plan.policy.stored].giveBack(state, plan.policy, { cost, nowMs })) given = true;
    }
    return given;
  }

  release({ places }: LeaseRequest): boolean {
    const nowMs = this.#clock.now();
    let freed = false;
    for (const held of places) {
      const state = this.#states.get(held.key) as ConcurrencyState | undefined;
      if (state !== undefined && concurrency.release(state, held, nowMs)) freed = true;
    }
    return freed;
  }

  renew(lease: LeaseRequest): number {
    const nowMs = this.#clock.now();
    let shortestMs = Number.POSITIVE_INFINITY;
    for (const held of lease.places) {
      const state = this.#states.get(held.key) as ConcurrencyState | undefined;
      if (state === undefined || !concurrency.renew(state, held, nowMs)) {
        // A lease that lost one of its places is lost whole: the others are given up too.
        this.release(lease);
        return 0;
      }
      shortestMs = Math.min(shortestMs, held.ttlMs);
    }
    return shortestMs;
  }

  block(key: string, lengthMs: number): void {
    this.#blocks.put(key, lengthMs, this.#clock.now());
    this.#sweepLater();
  }

  blocks(rule?: string): readonly BlockedKey[] {
    return this.#blocks.list(this.#clock.now(), rule);
  }

  inspect(checks: readonly Check[]): Record<string, number>[] {
    return checks.map(({ plan, key }) => {
      const model = models[plan.policy.stored];
      return model.describe(this.#state(key, this.#clock.now()) ?? model.fresh());
    });
  }

  reset(keys: readonly string[]): void {
    const nowMs = this.#clock.now();
    const lastMs = Math.floor(this.#resetAtMs) === nowMs ? this.#resetAtMs : nowMs;
    this.#resetAtMs = Math.min(lastMs + RESET_STEP_MS, nowMs + 1 - RESET_STEP_MS);
    for (const key of keys) {
      const isKnown = this.#state(key, nowMs) !== undefined;
      this.#states.delete(key);
      if (!isKnown) continue;
      const stored = storedIn(key);
      if (stored === undefined) continue;
      if (this.#resetsAsRedis && stored !== "rolling-window") {
        const ahead = emptyAhead(stored, nowMs + 1);
        if (ahead !== undefined) this.#states.set(key, ahead, nowMs);
        continue;
      }
      const state = models[stored].fresh();
      state.bornMs = this.#resetAtMs;
      state.endsAtMs = nowMs + 1;
      this.#states.set(key, state, nowMs);
    }
  }

  askForPool(key: string, ask: PoolAsk): PoolAsked {
    const nowMs = this.#clock.now();
    const known = this.#state(key, nowMs) as PoolState | undefined;
    const state = known ?? pool.fresh();
    const { asked, endsHeld } = askForPool(state, ask, { heldUnits: this.#grants?.heldOf(key) ?? 0, nowMs });
    if (endsHeld) this.#grants?.forget(key);
    if (known === undefined && asked.isMine) this.#add(key, state, nowMs);
    return asked;
  }

  fillPool(key: string, fill: PoolFill): PoolFilled {
    const nowMs = this.#clock.now();
    const state = this.#state(key, nowMs) as PoolState | undefined;
    return { nowMs, isCounted: state !== undefined && fillPool(state, fill, nowMs) };
  }

  ready(): boolean {
    return true;
  }

  close(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  /** One timer for the whole store, only while it holds anything; it never keeps the process alive. */
  #sweepLater(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setInterval(() => {
      const nowMs = this.#clock.now();
      this.#states.sweep(LOOKS_PER_SWEEP, nowMs);
      this.#records.sweep(LOOKS_PER_SWEEP, nowMs);
      this.#grants?.sweep(nowMs);
      this.#holds.sweep(LOOKS_PER_SWEEP, nowMs);
      this.#limit.watch(this.memory());
      if (this.#states.count + this.#records.count + this.#holds.count + this.heldKeys === 0) this.close();
    }, SWEEP_EVERY_MS);
    this.#sweeper.unref();
  }
}

/** Charges at the instant of a turn: what is left until then is nothing. */
function chargeLater(state: State, policy: Policy, charge: Charge, verdict: Verdict): void {
  models[policy.stored].charge(state, policy, { ...charge, nowMs: charge.nowMs + verdict.delayMs }, verdict);
  verdict.remaining = Math.min(verdict.remaining, 0);
  verdict.resetAfterMs += verdict.delayMs;
}

/** A verdict that its own charge did not bring up to date. */
function takeOver(verdict: Verdict, state: State): void {
  verdict.charged = true;
  if ("given" in state) tellGiven(verdict, state as BucketState);
}

/** An empty counter whose clock is ahead, until it is over: as reset.lua leaves one. */
function emptyAhead(stored: Stored, atMs: number): State | undefined {
  if (stored === "concurrency" || stored === "pool") return undefined;
  const state = models[stored].fresh() as State & { lastMs?: number; debt?: unknown };
  if (state.lastMs === undefined) state.debt = { units: 0, atMs, fromMs: atMs };
  else state.lastMs = atMs;
  state.endsAtMs = atMs + 1;
  return state;
}

/** A store for one process. */
export function memoryStore(options?: MemoryStoreOptions): MemoryStore {
  return new MemoryStore(options);
}

/** For `sluice/internal`: decides what a Redis decided, again. */
export function redisTwin(options: MemoryStoreOptions): MemoryStore {
  return new MemoryStore(options, { resetsAsRedis: true });
}
