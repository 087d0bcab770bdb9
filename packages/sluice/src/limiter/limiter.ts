/**
 * The limiter: attributes -> checks -> store -> decision. `#ask` and the three methods below it are the life of a check.
 *
 * Its steps, and how each can fail:
 *   1. the rule book turns attributes into checks     malformed input rejects with `invalid-request`
 *   2. the store decides them, all or nothing         a store that fails leads to step 3; nothing is thrown
 *   3. each rule's failure policy answers             the decision carries `degraded`
 *   4. the decision is made, listeners receive it     a listener that throws becomes a process warning
 */
import type { Check } from "../check.js";
import type { Settlement } from "../decision.js";
import { SluiceError } from "../errors.js";
import { Prefetch, type PrefetchStats } from "../prefetch/prefetch.js";
import type { RegionStats } from "../regions/home-fetches.js";
import { refuseGlobal, regionalStoreOf } from "../regions/region-options.js";
import type { RegionalStore } from "../regions/regional-store.js";
import type { LearnedCosts } from "../reservations/estimates.js";
import type { ReservationStats } from "../reservations/reservation-counts.js";
import { Reservations } from "../reservations/reservations.js";
import type { Attributes, Rule } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import { LoadShedder, type SheddingStats } from "../shedding/load-shedder.js";
import { DEFAULT_REPORT_TTL_MS, LOOP_KEY } from "../shedding/utilisation-reports.js";
import type { SoleDecider } from "../sole-request.js";
import type { MemoryUse } from "../store/memory/memory-limit.js";
import { MemoryStore } from "../store/memory/memory-store.js";
import type { BlockedKey, MaybePromise, Store, StoreReply } from "../store/store.js";
import type { StoreStats } from "../store/store-stats.js";
import { AdaptSignals } from "./adapt-signals.js";
import { AdaptiveLimits, type AdaptiveStats } from "./adaptive-limits.js";
import { asCharges, refusingNothing } from "./charges.js";
import { checkedBlockLength } from "./check-input.js";
import {
  type AcquireOptions,
  type Asked,
  type CheckOptions,
  type CheckPart,
  type CheckRequest,
  checkRequest,
} from "./check-request.js";
import { Decision } from "./decision.js";
import { newLeaseId } from "./entry-id.js";
import { type Explanation, explainDecision } from "./explain.js";
import { extensionDecision } from "./extension-decision.js";
import { FailurePolicy } from "./failure-policy.js";
import { InstanceShare } from "./instance-share.js";
import { byPart, type DecidedParts, joinChecks } from "./join-checks.js";
import { Leases } from "./leases.js";
import { LimiterEmitter, type LimiterEvents } from "./limiter-events.js";
import { checkOptions, DEFAULT_MAX_WAITING, type LimiterOptions } from "./limiter-options.js";
import { Outage } from "./outage.js";
import { type OutsideUnits, outsideUnitsOf } from "./outside-units.js";
import { Refunds } from "./refunds.js";
import { RulesInForce } from "./rules-in-force.js";
import { SharedReports } from "./shared-reports.js";
import { shedFirst } from "./shed-first.js";
import { type WaitingKey, type WaitingStats, Waits } from "./waits.js";
import { tooManyWaiting, withoutWaiting } from "./without-waiting.js";

/** Of a report of utilisation. */
export interface UtilisationOptions {
  /** Which backend or part of the program reports. */
  source: string;
  key?: string;
  ttlMs?: number;
}

const NO_OPTIONS: CheckOptions = {};
/** For the counters of the policy `local`, which exist only during an outage: about a quarter of a million. */
const LOCAL_BYTES = 64 * 2 ** 20;
const NOTHING_TO_DECIDE: StoreReply = { nowMs: 0, verdicts: [], guarantee: "atomic" };

export class Limiter {
  readonly #store: Store;
  /** Where rules may be global. */
  readonly #regional: RegionalStore | undefined;
  /** Where the policy `local` counts. */
  readonly #local: MemoryStore;
  readonly #rules: RulesInForce;
  /** Absent where the store is this process itself: then every check costs no more than one from units in hand. */
  readonly #prefetch: Prefetch | undefined;
  readonly #share: InstanceShare;
  readonly #failurePolicy: FailurePolicy;
  readonly #outage: Outage;
  readonly #shedder: LoadShedder;
  readonly #reports: SharedReports;
  readonly #adaptive: AdaptiveLimits;
  readonly #leases: Leases;
  readonly #reservations: Reservations;
  readonly #refunds: Refunds;
  readonly #waits: Waits;
  readonly #events = new LimiterEmitter();
  readonly #namesRequests: boolean;
  /** Decides requests of one check in process: the memory store, or units in hand. Absent where something stands in front of them. */
  readonly #soleDecider: SoleDecider | undefined;
  #closed = false;

  constructor(options: LimiterOptions) {
    checkOptions(options);
    const { rules, rulesVersion: version = 1, clock, instances } = options;
    const regionStore: Store = options.store ?? new MemoryStore(clock === undefined ? {} : { clock });
    const regional = regionalStoreOf(options, regionStore, (rule) => this.findRule(rule)?.scope === "global");
    const store: Store = regional ?? regionStore;
    this.#regional = regional;
    const local = new MemoryStore({ maxBytes: LOCAL_BYTES });
    const share = new InstanceShare(store, instances);
    const events = this.#events;
    this.#store = store;
    this.#namesRequests = store.namesRequests === true;
    this.#local = local;
    this.#prefetch = store.isRemote === true ? new Prefetch(store) : undefined;
    const isPlainMemory = Object.getPrototypeOf(store) === MemoryStore.prototype;
    this.#soleDecider = isPlainMemory ? (store as MemoryStore) : this.#namesRequests ? undefined : this.#prefetch;
    this.#share = share;
    const nowMonotonicMs = (): number => performance.now();
    const virtualNow = clock && (() => clock.now());
    this.#shedder = new LoadShedder({ now: virtualNow ?? nowMonotonicMs, newId: newLeaseId });
    this.#reports = new SharedReports(store, this.#shedder);
    const onChange = (inForce: readonly Rule[], inForceVersion: number): void => {
      if (inForce.some(({ scope }) => scope === "global")) regional?.countRegions();
      share.countFor(inForce);
      this.#reports.hearFor(inForce);
      // The first rules come before they can be asked for.
      if (this.#rules !== undefined) this.#adaptive.follow(this.#rules.book);
      events.emit("rules", inForce, inForceVersion);
    };
    const now = virtualNow ?? nowMonotonicMs;
    const instance = newLeaseId();
    const signals = new AdaptSignals({ reports: this.#shedder.reports, shared: this.#reports, instance, now });
    this.#adaptive = new AdaptiveLimits({
      store,
      instance,
      now,
      utilisationOf: (signal) => signals.utilisationOf(signal),
      onMove: (move) => events.emit("limit", move),
    });
    const accept = regional === undefined ? refuseGlobal : undefined;
    this.#rules = new RulesInForce({ rules, version, onChange, accept });
    this.#adaptive.follow(this.#rules.book);
    this.#failurePolicy = new FailurePolicy(
      local,
      ({ plan }) => share.instances * (plan.regionTermMs > 0 ? (regional?.regions ?? 1) : 1),
    );
    this.#leases = new Leases({ store, local, shedder: this.#shedder, events });
    this.#reservations = new Reservations({
      store,
      local,
      onSettled: (id, settlement) => events.emit("settled", id, settlement),
      onExpired: (id, held) => events.emit("expired", id, held),
    });
    this.#refunds = new Refunds({ store, local, reservations: this.#reservations });
    this.#waits = new Waits(options.maxWaiting ?? DEFAULT_MAX_WAITING, clock);
    this.#outage = new Outage({
      store,
      degraded: (cause) => events.emit("degraded", cause),
      recovered: () => events.emit("recovered"),
    });
  }

  /** Rules in force. */
  get rules(): readonly Rule[] {
    return this.#rules.book.rules;
  }

  /** A rule in force, by its id; `rules` may hold a hundred thousand. */
  findRule(id: string): Rule | undefined {
    return this.#rules.book.find(id);
  }

  get rulesVersion(): number {
    return this.#rules.book.version;
  }

  /** Decides and charges. Never throws for a refusal or a store outage. */
  check(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    try {
      const sole = options === NO_OPTIONS ? this.#askSole(attributes) : undefined;
      if (sole !== undefined) return Promise.resolve(sole);
      const made = this.#ask(attributes, options, true);
      return made instanceof Promise ? made : Promise.resolve(made);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `check` for the hottest paths: where the store answers at once, so does this, without a promise; malformed input is thrown. */
  checkNow(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Decision | Promise<Decision> {
    const sole = options === NO_OPTIONS ? this.#askSole(attributes) : undefined;
    return sole ?? this.#ask(attributes, options, true);
  }

  /**
   * Decides, charges and waits: resolves when the request's turn has come, at once where it needs none or is refused. Where the signal
   * ends the wait, or the limiter closes, the turn is given back and the promise rejects.
   */
  async acquire(attributes: Attributes, options: AcquireOptions = NO_OPTIONS): Promise<Decision> {
    if (options.signal instanceof AbortSignal) options.signal.throwIfAborted();
    const decision = await this.#ask(attributes, options, true, this.#waits.isFull);
    return decision.delayMs === 0 ? decision : await this.#untilTurn(decision, attributes, options);
  }

  async #untilTurn(decision: Decision, attributes: Attributes, options: AcquireOptions): Promise<Decision> {
    // Others began to wait while the store was asked.
    if (this.#waits.isFull) {
      await this.#leave(decision);
      return await this.#ask(attributes, options, true, true);
    }
    const { lease } = decision;
    if (lease !== undefined) this.#leases.pause(lease);
    try {
      await this.#waits.untilTurn(decision, options.signal);
      if (lease !== undefined) this.#leases.resume(lease);
      return decision;
    } catch (error) {
      await this.#leave(decision);
      throw error;
    }
  }

  /** Gives back what a request holds that does not run. Without the store nothing is given back: the turn is spent, the lease ends. */
  async #leave(decision: Decision): Promise<void> {
    await Promise.allSettled([this.#refunds.refund(decision), decision.lease?.release()]);
  }

  /** How many requests wait in this process for a turn, by rule. */
  waitingStats(): WaitingStats {
    return this.#waits.stats();
  }

  /** Which keys wait in this process, those with the most requests first. */
  waitingKeys(): WaitingKey[] {
    return this.#waits.keys();
  }

  /**
   * Charges a cost that has been incurred already: never refused, counters may pass their limits, and refuse checks until the
   * debt is paid. The decision is always allowed; `remaining` and `debt` report how the counters stand. Takes no place.
   */
  async charge(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    this.#mustBeOpen();
    const { book } = this.#rules;
    const checks = asCharges(book.checks(attributes, options.cost));
    return await this.#askFor(checks, book.version, { attributes, options, charge: true, neverRefused: true });
  }

  /**
   * Decides several attribute sets, each at its own cost, as one request: all pass and are charged, or none is, but for charges.
   * `parts` of the answer holds the results of each set's checks, in order.
   */
  async checkAll(
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "id" | "wait"> = NO_OPTIONS,
  ): Promise<DecidedParts> {
    return await this.#askAll(parts, options);
  }

  /** The decision that `check` would make now, without charging. */
  async peek(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    return await this.#ask(attributes, options, false);
  }

  /** A peek that also reports which rules were considered, why each applies or not, and what is stored. */
  async explain(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Explanation> {
    const { book } = this.#rules;
    const decision = await this.peek(attributes, options);
    const reservations = this.#reservations;
    return await explainDecision(decision, { attributes, book, store: this.#store, reservations });
  }

  /** Gives back what a decision charged, once. By id it works from any instance, while the id is remembered. */
  async refund(decision: Decision | string): Promise<boolean> {
    this.#mustBeOpen();
    return await (typeof decision === "string" ? this.#refunds.refundById(decision) : this.#refunds.refund(decision));
  }

  /**
   * Gives units back to the counters that a check of the same attributes would charge, no matter which request charged them: for
   * callers that know neither decision nor id (Envoy's `is_negative_hits`). Never beyond an empty counter. The caller must know how
   * often. False if there was nothing to give back.
   */
  giveBack(attributes: Attributes, options: Pick<CheckOptions, "cost"> = NO_OPTIONS): Promise<boolean> {
    return this.giveBackAll([{ attributes, cost: options.cost }]);
  }

  /** The same for several attribute sets, each at its own cost. */
  async giveBackAll(parts: readonly CheckPart[]): Promise<boolean> {
    this.#mustBeOpen();
    return await this.#refunds.giveBack(this.#checksOf(parts).checks, parts);
  }

  /** Forgets what a rule has counted for a key. */
  async reset(ruleId: string, attributes: Attributes): Promise<void> {
    this.#mustBeOpen();
    const keys = this.#rules.book.keysOf(ruleId, attributes);
    const forgetUses = this.#prefetch?.beforeReset(keys);
    await this.#store.reset(keys, { rule: ruleId, attributes });
    forgetUses?.();
    this.#local.reset(keys);
  }

  /**
   * Blocks a key of a rule with `blockFor`: refused for so long, as if its traffic had been. `reset` lifts a block, this one or one that
   * traffic began.
   */
  async block(ruleId: string, attributes: Attributes, lengthMs: number): Promise<void> {
    this.#mustBeOpen();
    const key = this.#rules.book.blockKeyOf(ruleId, attributes);
    await this.#store.block(key, checkedBlockLength(lengthMs), { rule: ruleId, attributes });
  }

  /** Swaps the whole rule book. A document with mistakes throws and changes nothing. Counters live on where they can. */
  setRules(rules: readonly Rule[], version?: number): void {
    this.#mustBeOpen();
    this.#rules.set(rules, version);
  }

  /**
   * The same for many rules, in slices of a few milliseconds, between which checks are answered by the old rules. Resolves when
   * these rules are in force, or newer ones: of calls that overlap, `setRules` among them, the latest wins, whichever ends last.
   */
  async swapRules(rules: readonly Rule[], version?: number): Promise<void> {
    this.#mustBeOpen();
    await this.#rules.swap(rules, version);
  }

  static async swapValidatedRules(limiter: Limiter, rules: readonly Rule[], version?: number): Promise<void> {
    limiter.#mustBeOpen();
    await limiter.#rules.swapValidated(rules, version);
  }

  static checkLastPart(
    limiter: Limiter,
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "wait">,
  ): MaybePromise<Decision> {
    limiter.#mustBeOpen();
    const { book } = limiter.#rules;
    const { attributes, cost } = parts.at(-1)!;
    const checks = limiter.#checks(book, attributes, cost);
    return limiter.#askFor(checks, book.version, { attributes: parts[0]!.attributes, options, charge: true, parts });
  }

  static checkAllNow(
    limiter: Limiter,
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "wait">,
  ): MaybePromise<DecidedParts> {
    return limiter.#askAll(parts, options);
  }

  static outsideUnits(limiter: Limiter): OutsideUnits {
    return outsideUnitsOf(() => {
      limiter.#mustBeOpen();
      return { book: limiter.#rules.book, store: limiter.#store };
    });
  }

  /**
   * Reports how busy a backend or this program is, from 0 to 1, for load-shedding rules with the signal `reported`. The highest report of all
   * sources counts, each for `ttlMs` (default 10 s). `key`: only for the gauge of these key values, joined by commas.
   * Holds here at once; resolves to whether the other instances of the store can see it, and never rejects. A value that is none throws.
   */
  reportUtilisation(
    value: number,
    { source, key = "", ttlMs = DEFAULT_REPORT_TTL_MS }: UtilisationOptions,
  ): Promise<boolean> {
    this.#mustBeOpen();
    if (key === LOOP_KEY)
      throw new SluiceError("invalid-request", `key: ${LOOP_KEY} is what instances report themselves`);
    return this.#reports.report({ value, source, key, ttlMs });
  }

  /** What the load-shedding rules in force see and shed. */
  sheddingStats(): SheddingStats[] {
    return this.#shedder.stats().filter(({ rule }) => this.findRule(rule)?.algorithm === "load-shedding");
  }

  /** How the rules with `adapt` stand. */
  adaptiveStats(): AdaptiveStats[] {
    return this.#adaptive.stats();
  }

  /** Frees a lease by its id. False if it was not held any more. */
  release(leaseId: string): Promise<boolean> {
    return this.#leases.release(leaseId);
  }

  /** Holds a lease for another term: ms until it now ends, 0 if it was lost. */
  renew(leaseId: string): Promise<number> {
    return this.#leases.renew(leaseId);
  }

  /**
   * Tells what a reserved request really cost, by the cost attributes of its rules: the difference to what was held is given back or
   * charged, once. From any instance; safe to send again. Never throws for a store outage: the settlement is then kept, and sent later.
   */
  async settle(reservationId: string, attributes: Attributes): Promise<Settlement> {
    this.#mustBeOpen();
    return await this.#reservations.settle(reservationId, attributes);
  }

  /** Settles a reservation at 0: the work was not done. */
  async cancel(reservationId: string): Promise<Settlement> {
    this.#mustBeOpen();
    return await this.#reservations.cancel(reservationId);
  }

  /**
   * Holds more for a reservation, up to these costs in all, and begins its term anew. Refused where a rule with `overrun: stop` has no
   * room; a rule with `finish` goes into debt instead. Rejects with `unknown-reservation` if it is not open.
   */
  async extend(reservationId: string, attributes: Attributes): Promise<Decision> {
    this.#mustBeOpen();
    const extension = await this.#reservations.extend(reservationId, attributes);
    return extensionDecision(extension, this.rulesVersion);
  }

  /** Figures about reservations since the start. */
  reservationStats(): ReservationStats {
    return this.#reservations.stats();
  }

  /** What requests under a rule with `estimate` really cost, of all instances. Rejects where the store does not answer. */
  async learnedCosts(ruleId: string): Promise<LearnedCosts[]> {
    return await this.#reservations.learned(this.#rules.book.plansOf(ruleId));
  }

  on<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#events.on(event, listener);
    return this;
  }

  off<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#events.off(event, listener);
    return this;
  }

  /** Whether the store answers now. Waits a second, or the store's deadline if that is longer, and never throws: checks work either way. */
  async ready(): Promise<boolean> {
    return !this.#closed && (await this.#store.ready());
  }

  /** The store's calls since its start; undefined where it makes none. */
  storeStats(): StoreStats | undefined {
    return this.#store.stats?.();
  }

  /** Units fetched ahead, and how many decisions they made; undefined where the store is this process itself. */
  prefetchStats(): PrefetchStats | undefined {
    return this.#prefetch?.stats();
  }

  /** This region's fetches from the global store; undefined without one. */
  regionStats(): RegionStats | undefined {
    return this.#regional?.regionStats();
  }

  /** The contents of a store in memory; undefined for another. */
  memoryUse(): MemoryUse | undefined {
    return this.#store.memory?.();
  }

  /** Blocked keys in a store in memory, up to a thousand; undefined for another. */
  blocksInMemory(rule?: string): readonly BlockedKey[] | undefined {
    return this.#store.blocks?.(rule);
  }

  /** Why the store did not answer when `ready` asked it last: an error whose message names the remedy; undefined if it did. */
  get whyNotReady(): unknown {
    return this.#store.whyNotReady;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#waits.close();
    this.#outage.close();
    this.#local.close();
    this.#reports.close();
    this.#adaptive.close();
    await this.#prefetch?.close();
    await this.#reservations.close();
    await this.#share.stop();
    await this.#store.close();
  }

  /** `holds`: whether estimates are held where a cost is not known yet. */
  #checksOf(parts: readonly CheckPart[], holds = false): ReturnType<typeof joinChecks> {
    return joinChecks(
      parts.map(({ attributes, cost, charge, book = this.#rules.book }) => {
        if (charge === true) return asCharges(book.checks(attributes, cost));
        return holds ? this.#checks(book, attributes, cost) : book.checks(attributes, cost);
      }),
    );
  }

  /** The checks of a request; where the cost is known only afterwards, at what is to be held. */
  #checks(book: RuleBook, attributes: Attributes, cost: number | undefined): readonly Check[] {
    const checks = book.checks(attributes, cost);
    return book.estimates ? this.#reservations.estimates.price(checks) : checks;
  }

  #ask(attributes: Attributes, options: CheckOptions, charge: boolean, isCrowded = false): MaybePromise<Decision> {
    this.#mustBeOpen();
    const { book } = this.#rules;
    if (book.shedding === undefined) {
      const checks = this.#checks(book, attributes, options.cost);
      return this.#askFor(checks, book.version, { attributes, options, charge, isCrowded });
    }
    const parts = [{ attributes, cost: options.cost }];
    return shedFirst(this.#shedder, { book, parts, looks: !charge, options }, (admission) => {
      const checks = admission?.refused ? [] : this.#checks(book, attributes, options.cost);
      return this.#askFor(checks, book.version, { attributes, options, charge, admission, isCrowded });
    });
  }

  #askAll(parts: readonly CheckPart[], options: Pick<CheckOptions, "id" | "wait">): MaybePromise<DecidedParts> {
    this.#mustBeOpen();
    const { checks, places } = this.#checksOf(parts, true);
    const attributes = parts[0]?.attributes ?? {};
    const { book } = this.#rules;
    const asked: Asked = { attributes, options, charge: true, parts };
    const made = shedFirst(this.#shedder, { book, parts, looks: false, options }, (admission) =>
      this.#askFor(admission?.refused ? [] : checks, this.rulesVersion, { ...asked, admission }),
    );
    return made instanceof Promise ? made.then((decision) => byPart(decision, places)) : byPart(made, places);
  }

  /**
   * The short way of a check that is decided in process: one rule, one counter, no listener (`rules/sole-rule.ts`, `sole-request.ts`).
   * Undefined for every other; the steps of `#ask` that it leaves out have nothing to do there.
   */
  #askSole(attributes: Attributes): Decision | undefined {
    const { sole } = this.#rules.book;
    const decider = this.#soleDecider;
    if (sole === undefined || decider === undefined || this.#closed) return undefined;
    if ((decider === this.#prefetch && !sole.prefetches) || this.#events.hasDecisionListener) return undefined;
    const request = sole.requestOf(attributes);
    const reply = request && decider.decideSole(request);
    return reply && new Decision(request, reply);
  }

  #askFor(found: readonly Check[], rulesVersion: number, asked: Asked): MaybePromise<Decision> {
    const checks = asked.isCrowded === true || asked.options.wait === false ? withoutWaiting(found) : found;
    const request = checkRequest(checks, rulesVersion, this.#namesRequests ? { ...asked, isNamed: true } : asked);
    if (checks.length === 0) return this.#decide(request, NOTHING_TO_DECIDE);
    const reply =
      request.mayPrefetch && this.#prefetch !== undefined
        ? this.#prefetch.decide(request)
        : this.#store.decide(request);
    if (!(reply instanceof Promise)) {
      // A remembered refusal holds only while the store answers. Where all traffic is refused so, no other check would end the outage.
      if (this.#outage.isOn && reply.isRemembered === true) this.#outage.decided();
      return this.#decide(request, reply);
    }
    return reply.then(
      (answered) => {
        if (this.#outage.isOn && answered.judged === undefined) this.#outage.decided();
        return this.#decide(request, answered);
      },
      (error) => this.#decideByPolicy(request, error),
    );
  }

  #decide(request: CheckRequest, found: StoreReply): Decision {
    const reply = reworded(request, found);
    const lease = this.#leases.leaseOf(request, reply, "store");
    const reservation = request.holdMs === undefined ? undefined : this.#reservations.of(request, reply, false);
    const { judged } = reply;
    // The region's store decided, but a failure policy stood in for the global one.
    if (judged !== undefined) this.#outage.failed(judged.cause);
    const asJudged = judged === undefined ? request : { ...request, checks: judged.checks };
    const degraded = judged?.degraded;
    const made = { request: asJudged, reply, charger: "store" as const, lease, reservation, degraded };
    return this.#publish(request, new Decision(made));
  }

  async #decideByPolicy(request: CheckRequest, cause: unknown): Promise<Decision> {
    // The caller made a mistake; the store is healthy.
    if (cause instanceof SluiceError && cause.code !== "store-unavailable") throw cause;
    this.#outage.failed(cause);
    const { checks, verdicts, degraded, nowMs } = await this.#failurePolicy.answer(request);
    const judged: CheckRequest = { ...request, checks };
    const found: StoreReply = { nowMs, verdicts, guarantee: "atomic" };
    const reply = reworded(judged, found);
    const charger = degraded === "local" ? "local" : "nobody";
    const lease = this.#leases.leaseOf(judged, reply, charger);
    const reservation = charger === "local" ? this.#reservations.of(judged, reply, true) : undefined;
    return this.#publish(request, new Decision({ request: judged, reply, charger, lease, reservation, degraded }));
  }

  #publish(request: CheckRequest, decision: Decision): Decision {
    // A peek decides nothing: listeners that count decisions must not count it.
    if (request.charge && this.#events.hasDecisionListener) this.#events.emit("decision", decision, request);
    return decision;
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new SluiceError("closed", "the limiter is closed");
  }
}

function reworded(request: CheckRequest, reply: StoreReply): StoreReply {
  if (request.neverRefused) return refusingNothing(reply);
  return request.isCrowded ? tooManyWaiting(reply, request.checks) : reply;
}

/** For `sluice/internal`: `swapRules` for rules that `parseRules` returned, which need no second validation. */
export const swapValidatedRules = Limiter.swapValidatedRules;

/**
 * For `sluice/internal`: the decision that `checkAll` makes where no rule meets any part but the last, no rule sheds load, and no part is a
 * charge. It looks up that part alone, and answers at once where the store does. Listeners hear the attributes of the first.
 */
export const checkLastPart = Limiter.checkLastPart;

/** For `sluice/internal`: `checkAll`, but answered at once where the store answers at once. Malformed values are thrown, or reject. */
export const checkAllNow = Limiter.checkAllNow;

/** For `sluice/internal`: units that somebody outside this process holds. */
export const outsideUnits = Limiter.outsideUnits;

/** `createLimiter({ rules, store })`; without a store, counters live in this process. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options);
}
