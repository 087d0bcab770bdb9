/**
 * The store for one process: the models of `algorithms/`, on a bounded map. It answers synchronously. In: requests with their checks. Out:
 * verdicts; all of a request's checks are charged, or none. This file has the clock, the request ids and the sweeper; `memory-decider.ts`
 * decides.
 */
import type { CostWeights } from "../../algorithms/cost-histogram.js";
import { type Charge, type State, type Verdict, verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { PoolAsk, PoolAsked, PoolFill, PoolFilled } from "../../algorithms/pool.js";
import type { Check } from "../../check.js";
import { isTurnsKey, storedIn } from "../../keys.js";
import type { SoleDecider } from "../../sole-request.js";
import { isRepeat } from "../asked-counters.js";
import {
  type Amounts,
  chargingPolicy,
  type ExtendReply,
  type HeldCounter,
  type ReservationState,
  type Reserved,
  type SettleReply,
} from "../reserved.js";
import {
  type BlockedKey,
  type LeaseRequest,
  otherRequest,
  type RefundRequest,
  type Store,
  type StoreReply,
  type StoreRequest,
} from "../store.js";
import { bornByReset, emptyAhead, nextResetMs } from "./counter-after-reset.js";
import { CounterMap } from "./counter-map.js";
import { MemoryBlocks } from "./memory-blocks.js";
import { MemoryCosts } from "./memory-costs.js";
import { MemoryCounters } from "./memory-counters.js";
import { MemoryDecider } from "./memory-decider.js";
import { MemoryGrants } from "./memory-grants.js";
import { MemoryHolds } from "./memory-holds.js";
import { MemoryLeases } from "./memory-leases.js";
import { MemoryLimit, type MemoryUse } from "./memory-limit.js";
import { MemoryPools } from "./memory-pools.js";
import { MemoryRefunds } from "./memory-refunds.js";
import { MemorySole } from "./memory-sole.js";
import { type Clock, checkedMaxBytes, type MemoryStoreOptions } from "./memory-store-options.js";
import { MemoryTurns } from "./memory-turns.js";
import { RequestRecords, repeated } from "./request-records.js";

const SWEEP_EVERY_MS = 1_000;
const LOOKS_PER_SWEEP = 20_000;
/** Share of the bytes; the rest is for counters. */
const SHARE_OF_IDS = 1 / 4;
/** Share of the ids' bytes, for reservations. */
const SHARE_OF_HOLDS = 1 / 4;

export class MemoryStore implements Store {
  readonly #clock: Clock;
  readonly #states: CounterMap;
  readonly #counters: MemoryCounters;
  readonly #decider: MemoryDecider;
  readonly #sole: MemorySole;
  readonly #blocks: MemoryBlocks;
  readonly #records: RequestRecords;
  readonly #refunds: MemoryRefunds;
  readonly #leases: MemoryLeases;
  readonly #holds: MemoryHolds;
  readonly #pools: MemoryPools;
  readonly #turns: MemoryTurns;
  readonly #limit: MemoryLimit;
  readonly #resetsAsRedis: boolean;
  readonly #costs = new MemoryCosts();
  /** Created by the first request with a fetch. */
  #grants: MemoryGrants | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  /**
   * The last reset, in steps of a fraction of its millisecond. Later charges in the same millisecond carry this time, because a charge from
   * before the reset must not be refunded out of one from after it.
   */
  #resetAtMs = 0;

  /**
   * `resetsAsRedis`: for the replay of a recording. In Redis, a counter that was reset has its clock in the next millisecond (reset.lua); a
   * sorted set identifies charges by name.
   */
  constructor(options: MemoryStoreOptions = {}, { resetsAsRedis = false } = {}) {
    const maxBytes = checkedMaxBytes(options);
    const recordBytes = Math.floor(maxBytes * SHARE_OF_IDS);
    const holdBytes = Math.floor(recordBytes * SHARE_OF_HOLDS);
    const states = new CounterMap(maxBytes - recordBytes);
    const counters = new MemoryCounters(states, () => this.#sweepLater());
    const blocks = new MemoryBlocks(states);
    const turns = new MemoryTurns(states);
    const state = (key: string, nowMs: number): State | undefined => counters.state(key, nowMs);
    const charge = (counter: HeldCounter, added: Charge, found: Verdict, charged: State): void =>
      counters.charge(
        { key: counter.key, plan: { mode: counter.mode, policy: chargingPolicy(counter) } },
        added,
        found,
        charged,
      );
    const clock = options.clock ?? Date;
    this.#clock = clock;
    this.#states = states;
    this.#counters = counters;
    this.#decider = new MemoryDecider({ counters, blocks, turns });
    this.#sole = new MemorySole({ clock, states, counters });
    this.#blocks = blocks;
    this.#records = new RequestRecords(recordBytes - holdBytes);
    this.#refunds = new MemoryRefunds(counters, turns);
    this.#leases = new MemoryLeases(states);
    this.#holds = new MemoryHolds({ state, charge }, holdBytes);
    this.#pools = new MemoryPools(counters);
    this.#turns = turns;
    this.#limit = new MemoryLimit(maxBytes, options.onMemoryLimit);
    this.#resetsAsRedis = resetsAsRedis;
  }

  /** How many counters are held, including expired ones that were not swept yet. */
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

  /** Decides requests of one check and nothing else, without allocating lists. */
  get soleDecider(): SoleDecider {
    return this.#sole;
  }

  #decideOnce(request: StoreRequest, id: string, nowMs: number): StoreReply {
    const record = this.#records.find(id, nowMs);
    if (record !== undefined) {
      if (record.fingerprint !== request.fingerprint || !isRepeat(request, record.receipt)) throw otherRequest();
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
    const verdicts = this.#decider.decide(request, nowMs);
    if (request.holdMs !== undefined) this.#hold(request, verdicts, nowMs);
    // Only in the millisecond of the last reset, or if the clock went backwards.
    if (nowMs <= this.#resetAtMs) return this.#replyAfterReset(verdicts, nowMs);
    return { nowMs, verdicts, guarantee: "atomic" };
  }

  #replyAfterReset(verdicts: Verdict[], nowMs: number): StoreReply {
    if (nowMs !== Math.floor(this.#resetAtMs)) return { nowMs, verdicts, guarantee: "atomic" };
    return { nowMs, verdicts, guarantee: "atomic", timesMs: verdicts.map(() => this.#resetAtMs) };
  }

  /** A fraction distinguishes charges after a reset from those before it in the same millisecond. */
  #chargedAtMs(nowMs: number): number {
    return nowMs === Math.floor(this.#resetAtMs) ? this.#resetAtMs : nowMs;
  }

  #replyWithGrants(request: StoreRequest, nowMs: number): StoreReply {
    this.#grants ??= this.#newGrants();
    this.#grants.settle(request, nowMs);
    const verdicts = this.#decider.decide(request, nowMs);
    const passes = (check: Check): boolean => this.#decider.passes(check);
    const grants = request.fetches && this.#grants.grant(request, verdicts, passes, nowMs);
    if (grants !== undefined) this.#sweepLater();
    if (request.holdMs !== undefined) this.#hold(request, verdicts, nowMs);
    return { nowMs, verdicts, guarantee: "atomic", ...(grants && { grants }) };
  }

  #newGrants(): MemoryGrants {
    const counters = this.#counters;
    const grants = new MemoryGrants({
      state: ({ key, plan }, atMs) => counters.state(key, atMs) ?? models[plan.policy.stored].fresh(),
      charge: (check, charge, state) => counters.charge(check, charge, verdict(true, 0, 0, 0, undefined), state),
    });
    this.#decider.grants = grants;
    this.#sole.closedUntilMs = Number.POSITIVE_INFINITY;
    return grants;
  }

  /** If the request passed, remembers what was held until it is settled. */
  #hold(request: StoreRequest, verdicts: readonly Verdict[], nowMs: number): void {
    if (!request.charge || this.#decider.isRefused) return;
    this.#holds.open(request, verdicts, { atMs: this.#chargedAtMs(nowMs), nowMs });
    this.#sweepLater();
  }

  settle(reservation: Reserved, amounts: Amounts, name = ""): SettleReply {
    return this.#holds.settle(reservation, amounts, { name, nowMs: this.#clock.now() });
  }

  extend(reservation: Reserved, amounts: Amounts): ExtendReply {
    const nowMs = this.#clock.now();
    return this.#holds.extend(reservation, amounts, { atMs: this.#chargedAtMs(nowMs), nowMs });
  }

  holdState(reservation: Reserved): ReservationState {
    return this.#holds.stateOf(reservation, this.#clock.now());
  }

  learn(name: string, costs: CostWeights): CostWeights {
    return this.#costs.learn(name, costs);
  }

  /** When a counter expires; undefined if it is gone. For a replay. */
  endOf(key: string): number | undefined {
    return this.#states.get(key)?.endsAtMs;
  }

  recall(id: string): StoreReply | undefined {
    return this.#records.recall(id, this.#clock.now());
  }

  refund({ charges, id }: RefundRequest): boolean {
    const nowMs = this.#clock.now();
    if (id !== undefined) {
      const record = this.#records.find(id, nowMs);
      // The id may have been refunded and decided again: that is another charge.
      if (record === undefined || record.receipt.entryId !== charges[0]!.entryId) return false;
      this.#records.delete(id);
    }
    this.#refunds.refund(charges, nowMs);
    return true;
  }

  giveBack(checks: readonly Check[]): boolean {
    return this.#refunds.giveBack(checks, this.#clock.now());
  }

  release(lease: LeaseRequest): boolean {
    return this.#leases.release(lease, this.#clock.now());
  }

  renew(lease: LeaseRequest): number {
    return this.#leases.renew(lease, this.#clock.now());
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
      return model.describe(this.#counters.state(key, this.#clock.now()) ?? model.fresh());
    });
  }

  reset(keys: readonly string[]): void {
    const nowMs = this.#clock.now();
    this.#resetAtMs = nextResetMs(this.#resetAtMs, nowMs);
    if (this.#grants === undefined) this.#sole.closedUntilMs = this.#resetAtMs;
    for (const key of keys) {
      if (isTurnsKey(key)) {
        this.#turns.reset(key, this.#resetsAsRedis ? nowMs + 1 : this.#resetAtMs, nowMs);
        continue;
      }
      const isKnown = this.#counters.state(key, nowMs) !== undefined;
      this.#states.delete(key);
      const left = isKnown ? this.#leftByReset(key, nowMs) : undefined;
      if (left !== undefined) this.#states.set(key, left, nowMs);
    }
  }

  #leftByReset(key: string, nowMs: number): State | undefined {
    const stored = storedIn(key);
    if (stored === undefined) return undefined;
    if (this.#resetsAsRedis && stored !== "rolling-window") return emptyAhead(stored, nowMs + 1);
    return bornByReset(stored, this.#resetAtMs, nowMs);
  }

  askForPool(key: string, ask: PoolAsk): PoolAsked {
    return this.#pools.ask(key, ask, this.#grants, this.#clock.now());
  }

  fillPool(key: string, fill: PoolFill): PoolFilled {
    return this.#pools.fill(key, fill, this.#clock.now());
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

/** A store for one process. */
export function memoryStore(options?: MemoryStoreOptions): MemoryStore {
  return new MemoryStore(options);
}

/** For `sluice/internal`: decides again what a Redis decided. */
export function redisTwin(options: MemoryStoreOptions): MemoryStore {
  return new MemoryStore(options, { resetsAsRedis: true });
}
