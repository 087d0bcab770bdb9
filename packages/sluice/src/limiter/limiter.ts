/**
 * The limiter: attributes -> checks -> store -> decision. `#ask` and the methods below it are the life of a check.
 *
 * Its steps, and how each can fail:
 *   1. the rule book turns attributes into checks     malformed input rejects with `invalid-request`
 *   2. the store decides them, all or nothing         a store failure leads to step 3; nothing is thrown
 *   3. each rule's failure policy answers             the decision carries `degraded`
 *   4. the decision is made and emitted               a listener that throws becomes a process warning
 *
 * `limiter-parts.ts` makes its parts; `limiter-operations.ts` is everything besides checks.
 */
import type { Check } from "../check.js";
import { SluiceError } from "../errors.js";
import type { Prefetch } from "../prefetch/prefetch.js";
import { bounded } from "../reservations/estimates.js";
import type { Reservations } from "../reservations/reservations.js";
import type { Attributes } from "../rules/rule.js";
import type { RuleBook } from "../rules/rule-book.js";
import type { LoadShedder } from "../shedding/load-shedder.js";
import type { SoleDecider } from "../sole-request.js";
import type { MaybePromise, Store, StoreReply } from "../store/store.js";
import { asCharges, refusingNothing } from "./charges.js";
import { checkedOptions, checkedParts } from "./check-input.js";
import {
  type AcquireOptions,
  type Asked,
  type CheckOptions,
  type CheckPart,
  type CheckRequest,
  checkRequest,
  type ForAllRequests,
} from "./check-request.js";
import { Decision } from "./decision.js";
import { type Explanation, explainDecision } from "./explain.js";
import type { FailurePolicy } from "./failure-policy.js";
import { byPart, type DecidedParts, joinChecks } from "./join-checks.js";
import type { Leases } from "./leases.js";
import type { LimiterEmitter } from "./limiter-events.js";
import { LimiterOperations } from "./limiter-operations.js";
import type { LimiterOptions } from "./limiter-options.js";
import { limiterParts } from "./limiter-parts.js";
import type { Outage } from "./outage.js";
import type { Refunds } from "./refunds.js";
import type { RulesInForce } from "./rules-in-force.js";
import { shedFirst } from "./shed-first.js";
import { longestWaitOf, tooManyWaiting, waitingAtMost } from "./waiting-at-most.js";
import type { Waits } from "./waits.js";

const NO_OPTIONS: CheckOptions = {};
const NOTHING_TO_DECIDE: StoreReply = { nowMs: 0, verdicts: [], guarantee: "atomic" };

export class Limiter extends LimiterOperations {
  readonly #store: Store;
  #forAll: ForAllRequests;
  readonly #prefetch: Prefetch | undefined;
  #soleDecider: SoleDecider | undefined;
  readonly #rules: RulesInForce;
  readonly #failurePolicy: FailurePolicy;
  readonly #outage: Outage;
  readonly #shedder: LoadShedder;
  readonly #leases: Leases;
  readonly #reservations: Reservations;
  readonly #refunds: Refunds;
  readonly #waits: Waits;
  readonly #events: LimiterEmitter;

  constructor(options: LimiterOptions) {
    const parts = limiterParts(options);
    super(parts);
    this.#store = parts.store;
    this.#forAll = { isNamed: parts.store.namesRequests === true, versionIsLocal: undefined };
    this.#prefetch = parts.prefetch;
    this.#soleDecider = parts.soleDecider;
    this.#rules = parts.rules;
    this.#failurePolicy = parts.failurePolicy;
    this.#outage = parts.outage;
    this.#shedder = parts.shedder;
    this.#leases = parts.leases;
    this.#reservations = parts.reservations;
    this.#refunds = parts.refunds;
    this.#waits = parts.waits;
    this.#events = parts.events;
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

  /** `check` for hot paths: returns without a promise if the store answers synchronously. Malformed input throws. */
  checkNow(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Decision | Promise<Decision> {
    const sole = options === NO_OPTIONS ? this.#askSole(attributes) : undefined;
    return sole ?? this.#ask(attributes, options, true);
  }

  /**
   * Decides, charges and waits. Resolves when the request's turn has come; at once if it need not wait or is refused. If the signal aborts,
   * or the limiter closes, the turn is given back and the promise rejects.
   */
  async acquire(attributes: Attributes, options: AcquireOptions = NO_OPTIONS): Promise<Decision> {
    const { signal } = checkedOptions(options);
    if (signal instanceof AbortSignal) signal.throwIfAborted();
    const decision = await this.#ask(attributes, options, true, this.#waits.isFull);
    return decision.delayMs === 0 ? decision : await this.#untilTurn(decision, attributes, options);
  }

  async #untilTurn(decision: Decision, attributes: Attributes, options: AcquireOptions): Promise<Decision> {
    // The queue filled up while the store was asked.
    if (this.#waits.isFull) {
      await this.#leave(decision);
      return await this.#ask(attributes, options, true, true);
    }
    const { lease } = decision;
    if (lease !== undefined) this.#leases.pause(lease);
    try {
      await this.#waits.untilTurn(decision, options.signal);
      if (lease !== undefined) this.#leases.resume(lease);
    } catch (error) {
      await this.#leave(decision);
      throw error;
    }
    if (await this.#refunds.isStanding(decision)) return decision;
    // A retry shares the turn of the first attempt, which has left and given it back: this one needs a turn of its own.
    await this.#leave(decision);
    const again = await this.#ask(attributes, options, true, this.#waits.isFull);
    return again.delayMs === 0 ? again : await this.#untilTurn(again, attributes, options);
  }

  /**
   * Gives back what a request holds that will not run. Without the store nothing is given back: the turn is spent, the lease expires. A
   * retry only frees its place in flight: the rest belongs to the first attempt, which may run.
   */
  async #leave(decision: Decision): Promise<void> {
    if (Decision.isRepeat(decision)) {
      if (decision.lease !== undefined) this.#leases.freePlace(decision.lease);
      return;
    }
    await Promise.allSettled([this.#refunds.refund(decision), decision.lease?.release()]);
  }

  /**
   * Charges a cost that has already been incurred. Never refused: counters may pass their limits, and then refuse checks until the debt is
   * paid. The decision is always allowed; `remaining` and `debt` report the state of the counters. Takes no place under concurrency rules.
   */
  async charge(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    this.mustBeOpen();
    const { book } = this.#rules;
    const checks = asCharges(book.checks(attributes, checkedOptions(options).cost));
    return await this.#askFor(checks, book.version, { attributes, options, charge: true, neverRefused: true });
  }

  /**
   * Decides several attribute sets, each at its own cost, as one request: all pass and are charged, or none is (parts with `charge` always
   * are). `parts` of the result holds each set's results, in order.
   */
  async checkAll(
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "id" | "wait"> = NO_OPTIONS,
  ): Promise<DecidedParts> {
    return await this.#askAll(checkedParts(parts), checkedOptions(options));
  }

  /** The decision that `check` would make now, without charging. */
  async peek(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    return await this.#ask(attributes, options, false);
  }

  /** A peek that also reports which rules were considered, why each applies or not, and the stored state. */
  async explain(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Explanation> {
    const { book } = this.#rules;
    const decision = await this.peek(attributes, options);
    const reservations = this.#reservations;
    return await explainDecision(decision, { attributes, book, store: this.#store, reservations });
  }

  override async close(): Promise<void> {
    // From here on every check takes the long path, which throws `closed`.
    this.#soleDecider = undefined;
    await super.close();
  }

  static countVersionsLocally(limiter: Limiter): void {
    limiter.#forAll = { isNamed: limiter.#forAll.isNamed, versionIsLocal: true };
  }

  static checkLastPart(
    limiter: Limiter,
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "wait">,
  ): MaybePromise<Decision> {
    limiter.mustBeOpen();
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

  /** The checks of a request; if the cost is known only afterwards, priced at what is to be held. */
  #checks(book: RuleBook, attributes: Attributes, cost: number | undefined): readonly Check[] {
    const checks = book.checks(attributes, cost);
    return book.estimates ? this.#reservations.estimates.price(checks) : checks;
  }

  #checksOf(parts: readonly CheckPart[]): { checks: readonly Check[]; places: number[][] } {
    let estimates = false;
    const joined = joinChecks(
      parts.map(({ attributes, cost, charge, book = this.#rules.book }) => {
        const checks = book.checks(attributes, cost);
        if (charge === true) return asCharges(checks);
        estimates ||= book.estimates;
        return book.estimates ? this.#reservations.estimates.priceOfPart(checks) : checks;
      }),
    );
    return estimates ? { ...joined, checks: bounded(joined.checks) } : joined;
  }

  #ask(attributes: Attributes, options: CheckOptions, charge: boolean, isCrowded = false): MaybePromise<Decision> {
    this.mustBeOpen();
    const { book } = this.#rules;
    const { cost } = checkedOptions(options);
    if (book.shedding === undefined) {
      const checks = this.#checks(book, attributes, cost);
      return this.#askFor(checks, book.version, { attributes, options, charge, isCrowded });
    }
    const parts = [{ attributes, cost }];
    return shedFirst(this.#shedder, { book, parts, looks: !charge, options }, (admission) => {
      const checks = admission?.refused ? [] : this.#checks(book, attributes, cost);
      return this.#askFor(checks, book.version, { attributes, options, charge, admission, isCrowded });
    });
  }

  #askAll(parts: readonly CheckPart[], options: Pick<CheckOptions, "id" | "wait">): MaybePromise<DecidedParts> {
    this.mustBeOpen();
    const { book } = this.#rules;
    const { checks, places } = this.#checksOf(parts);
    const attributes = parts[0]?.attributes ?? {};
    const asked: Asked = { attributes, options, charge: true, parts };
    const made = shedFirst(this.#shedder, { book, parts, looks: false, options }, (admission) =>
      this.#askFor(admission?.refused ? [] : checks, this.rulesVersion, { ...asked, admission }),
    );
    return made instanceof Promise ? made.then((decision) => byPart(decision, places)) : byPart(made, places);
  }

  /**
   * Fast path for a check that is decided in process: one rule, one counter, no listener (`rules/sole-rule.ts`, `sole-request.ts`).
   * Undefined for any other check. The steps of `#ask` that it skips have nothing to do in this case.
   */
  #askSole(attributes: Attributes): Decision | undefined {
    const { sole } = this.#rules.book;
    const decider = this.#soleDecider;
    if (sole === undefined || decider === undefined) return undefined;
    if ((decider === this.#prefetch && !sole.prefetches) || this.#events.hasDecisionListener) return undefined;
    const request = sole.requestOf(attributes);
    const reply = request && decider.decideSole(request);
    return reply && new Decision(request, reply);
  }

  #askFor(found: readonly Check[], rulesVersion: number, asked: Asked): MaybePromise<Decision> {
    const checks = waitingAtMost(found, asked.isCrowded === true ? 0 : longestWaitOf(asked.options));
    const request = checkRequest({ checks, rulesVersion }, asked, this.#forAll);
    if (checks.length === 0) return this.#decide(request, NOTHING_TO_DECIDE);
    const reply =
      request.mayPrefetch && this.#prefetch !== undefined
        ? this.#prefetch.decide(request)
        : this.#store.decide(request);
    if (!(reply instanceof Promise)) {
      // A cached refusal is valid only while the store answers. If all traffic is refused from the cache, no other check would end the
      // outage.
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
    // The region's store decided, but a failure policy stood in for the global store.
    if (judged !== undefined) this.#outage.failed(judged.cause);
    const asJudged = judged === undefined ? request : { ...request, checks: judged.checks };
    const degraded = judged?.degraded;
    const made = { request: asJudged, reply, charger: "store" as const, lease, reservation, degraded };
    return this.#publish(request, new Decision(made));
  }

  async #decideByPolicy(request: CheckRequest, cause: unknown): Promise<Decision> {
    // The caller's mistake; the store is healthy.
    if (cause instanceof SluiceError && cause.code !== "store-unavailable") throw cause;
    this.#outage.failed(cause);
    const { checks, verdicts, degraded, nowMs } = await this.#failurePolicy.answer(request);
    const judged: CheckRequest = { ...request, checks };
    const found: StoreReply = { nowMs, verdicts, guarantee: "atomic" };
    const reply = reworded(judged, found);
    const charger = degraded === "local" ? "local" : "nobody";
    const lease = this.#leases.leaseOf(judged, reply, charger);
    const reservation = charger === "local" ? this.#reservations.of(judged, reply, true) : undefined;
    const decision = new Decision({ request: judged, reply, charger, lease, reservation, degraded });
    if (charger === "local") this.#refunds.chargedLocally(decision);
    return this.#publish(request, decision);
  }

  #publish(request: CheckRequest, decision: Decision): Decision {
    // A peek decides nothing, and listeners that count decisions must not see it.
    if (request.charge && this.#events.hasDecisionListener) this.#events.emit("decision", decision, request);
    return decision;
  }
}

function reworded(request: CheckRequest, reply: StoreReply): StoreReply {
  if (request.neverRefused) return refusingNothing(reply);
  return request.isCrowded ? tooManyWaiting(reply, request.checks) : reply;
}

/**
 * For `sluice/internal`: other instances may use the same version for other rules, because each counts the edits of its own file. A retry by id
 * that meets other rules is then taken for a retry after an edit, whatever their version.
 */
export const countVersionsLocally = Limiter.countVersionsLocally;

/**
 * For `sluice/internal`: the decision of `checkAll` if no rule matches any part but the last, no rule sheds load, and no part is a charge.
 * Looks up only that part, and returns synchronously if the store does. Listeners get the attributes of the first part.
 */
export const checkLastPart = Limiter.checkLastPart;

/** For `sluice/internal`: `checkAll`, but synchronous if the store is. Malformed values throw or reject. */
export const checkAllNow = Limiter.checkAllNow;

/** `createLimiter({ rules, store })`; without a store, counters live in this process. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options);
}
