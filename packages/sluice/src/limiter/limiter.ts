/**
 * The limiter: attributes -> checks -> store -> decision. The whole story of a request is `#ask`.
 *
 * The life of a check, and the exit of each step:
 *   1. the rule book turns attributes into checks     malformed input rejects with `invalid-request`
 *   2. the store decides them, all or nothing         a store that fails leads to 3 instead; nothing is thrown
 *   3. each rule's failure policy answers             the decision says `degraded`
 *   4. the decision is made, listeners hear of it     a listener that throws is warned of, never felt
 */
import { EventEmitter } from "node:events";
import type { Check } from "../check.js";
import type { CheckResult, Degraded } from "../decision.js";
import { SluiceError } from "../errors.js";
import { type Attributes, DEFAULT_FAILURE_POLICY, type Rule } from "../rules/rule.js";
import { type CompiledRules, type Considered, compilingRules, RuleBook } from "../rules/rule-book.js";
import { parsingRules } from "../rules/validate-rules.js";
import type { InstanceCount } from "../store/instance-count.js";
import type { MemoryUse } from "../store/memory-limit.js";
import { MemoryStore } from "../store/memory-store.js";
import type { MaybePromise, Store, StoreReply, StoreRequest } from "../store/store.js";
import type { StoreStats } from "../store/store-stats.js";
import { runAtOnce, runInSlices, type Sliced } from "../time-slices.js";
import { asCharges, refusingNothing } from "./charges.js";
import { checkedId, entriesFit, placesFit } from "./check-input.js";
import { newLeaseId, nextEntryId } from "./entry-id.js";
import { FailurePolicy } from "./failure-policy.js";
import { fingerprintOf } from "./fingerprint.js";
import { joinChecks } from "./join-checks.js";
import { Lease, parseLeaseId, placesOf, spellLeaseId } from "./lease.js";
import { checkOptions, type LimiterOptions } from "./limiter-options.js";
import { type Charger, Decision } from "./make-decision.js";
import { Outage } from "./outage.js";
import { Refunds } from "./refunds.js";

export interface CheckOptions {
  /** Overrides the rules' own cost; 0 only looks. */
  cost?: number;
  /** The same request with the same id within a minute gets the same decision and is charged once; another request is refused as invalid. */
  id?: string;
}

/** One attribute set of several that are decided as one request. */
export interface CheckPart {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  /**
   * Counted in full, even if the request is refused, by this part itself or by another. Its checks are refused where their counters
   * then are past their limits; at cost 0 they only say whether that is so.
   */
  readonly charge?: boolean | undefined;
  /** Rules for this part alone, instead of those in force (`ruleBook`). */
  readonly book?: RuleBook | undefined;
}

/** One considered rule with what is stored for it. */
export interface ExplainedRule extends Considered {
  readonly state?: Readonly<Record<string, number>>;
  /** When the same request could pass this rule, if nothing else arrives. */
  readonly nextAllowedAt?: string;
  /** The failure policy that answers for this rule, where the store does not: what the store holds is unknown then. */
  readonly degraded?: Degraded;
}

export interface Explanation {
  readonly decision: Decision;
  /** All rules that apply, and the first hundred of the others. */
  readonly rules: readonly ExplainedRule[];
  /** How many more do not apply; absent if none. */
  readonly more?: number;
}

/** What a decision was asked for. `checks`: the counters that were asked, in the order of the decision's checks. */
export interface DecidedRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly checks: readonly Pick<Check, "key">[];
}

export interface LimiterEvents {
  decision: [decision: Decision, request: DecidedRequest];
  /** An outage of the store began; once each. `cause`: why it did not answer. */
  degraded: [cause: unknown];
  /** It is over: checks were decided, and none failed for 5 s. */
  recovered: [];
  /** A lease was given back, or held for another term, through this limiter. */
  released: [leaseId: string];
  renewed: [leaseId: string, expiresAfterMs: number];
}

const NO_OPTIONS: CheckOptions = {};
/** For the counters of the policy `local`, which are there only during an outage: about a quarter of a million. */
const LOCAL_BYTES = 64 * 2 ** 20;
const NOTHING_TO_DECIDE: StoreReply = { nowMs: 0, verdicts: [], guarantee: "atomic" };

/** A request under way. `sinceMs`: performance.now() before the store was asked; 0 where no lease can come of it. */
interface Asked extends StoreRequest {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  readonly neverRefused: boolean;
  readonly sinceMs: number;
}

interface AskOptions {
  readonly attributes: Attributes;
  readonly options: CheckOptions;
  /** False only looks. */
  readonly charge: boolean;
  readonly neverRefused?: boolean;
  /** Where several attribute sets are one request. */
  readonly parts?: readonly CheckPart[];
}

export class Limiter {
  readonly #store: Store;
  readonly #local: MemoryStore;
  readonly #failurePolicy: FailurePolicy;
  /** As told; else they are counted, where a rule shares its limit among them. */
  readonly #instances: number | undefined;
  #count: InstanceCount | undefined;
  readonly #events = new EventEmitter();
  readonly #refunds: Refunds;
  #book: RuleBook;
  /** The calls that asked for other rules, counted; and which of them brought the book in force. */
  #swapCalls = 0;
  #bookCall = 0;
  /** Whether anybody listens to decisions: asked for every one of them. */
  #hasAudience = false;
  readonly #outage: Outage;
  #closed = false;

  constructor(options: LimiterOptions) {
    checkOptions(options);
    this.#book = new RuleBook(runAtOnce(readingRules(options.rules)), options.rulesVersion ?? 1);
    this.#store = options.store ?? new MemoryStore(options.clock === undefined ? {} : { clock: options.clock });
    this.#local = new MemoryStore({ maxBytes: LOCAL_BYTES });
    this.#refunds = new Refunds(this.#store, this.#local);
    this.#instances = options.instances;
    this.#failurePolicy = new FailurePolicy(this.#local, () => this.#instances ?? this.#count?.known ?? 1);
    this.#outage = new Outage({
      store: this.#store,
      degraded: (cause) => this.#emit("degraded", cause),
      recovered: () => this.#emit("recovered"),
    });
    this.#countIfShared();
  }

  /** Rules in force. */
  get rules(): readonly Rule[] {
    return this.#book.rules;
  }

  /** A rule in force, by its id; `rules` may hold a hundred thousand. */
  findRule(id: string): Rule | undefined {
    return this.#book.find(id);
  }

  get rulesVersion(): number {
    return this.#book.version;
  }

  /** Decides and charges. Never throws for a refusal or a store outage. */
  check(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    try {
      const made = this.#ask(attributes, options, true);
      return made instanceof Promise ? made : Promise.resolve(made);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** `check` for the hottest paths: where the store answers at once, so does this, without a promise; malformed input is thrown. */
  checkNow(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Decision | Promise<Decision> {
    return this.#ask(attributes, options, true);
  }

  /**
   * Charges a cost that has been incurred already: never refused, counters may pass their limits, and refuse checks until the
   * debt is paid. The decision is always allowed; `remaining` and `debt` tell how the counters stand. Takes no place.
   */
  async charge(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    this.#mustBeOpen();
    const checks = asCharges(this.#book.checks(attributes, options.cost));
    return await this.#askFor(checks, this.#book.version, { attributes, options, charge: true, neverRefused: true });
  }

  /**
   * Decides several attribute sets, each at its own cost, as one request: all pass and are charged, or none is, but for charges.
   * `parts` of the answer holds the results of each set's checks, in order.
   */
  async checkAll(
    parts: readonly CheckPart[],
    options: Pick<CheckOptions, "id"> = NO_OPTIONS,
  ): Promise<{ decision: Decision; parts: readonly (readonly CheckResult[])[] }> {
    this.#mustBeOpen();
    const { checks, places } = this.#checksOf(parts);
    const attributes = parts[0]?.attributes ?? {};
    const decision = await this.#askFor(checks, this.#book.version, { attributes, options, charge: true, parts });
    return { decision, parts: places.map((indices) => indices.map((i) => decision.checks[i]!)) };
  }

  /** The decision that `check` would make now, without charging. */
  async peek(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Decision> {
    return await this.#ask(attributes, options, false);
  }

  /** A peek that also tells which rules were considered, why each applies or not, and what is stored. */
  async explain(attributes: Attributes, options: CheckOptions = NO_OPTIONS): Promise<Explanation> {
    const book = this.#book;
    const decision = await this.peek(attributes, options);
    const { checks, verdicts, nowMs } = Decision.originOf(decision);
    const live = checks.filter(({ plan }) => plan.mode !== "candidate");
    const isDegraded = decision.degraded !== undefined;
    const states = isDegraded ? [] : await Promise.resolve(this.#store.inspect(live)).catch(() => []);
    const placeOf = new Map(live.map(({ plan }, at) => [plan.rule, at]));
    const waits = new Map(checks.map((check, i) => [check, verdicts[i]!.retryAfterMs]));
    const rules = book.explain(attributes).map((considered): ExplainedRule => {
      const at = placeOf.get(considered.rule);
      if (at === undefined) return considered;
      const nextAllowedAt = new Date(nowMs + waits.get(live[at]!)!).toISOString();
      const policy = isDegraded && { degraded: live[at]!.plan.onStoreFailure };
      return { ...considered, ...(states[at] && { state: states[at] }), nextAllowedAt, ...policy };
    });
    const more = book.rules.length - rules.length;
    return { decision, rules, ...(more > 0 && { more }) };
  }

  /** Gives back what a decision charged, once. By id it works from any instance, while the id is remembered. */
  async refund(decision: Decision | string): Promise<boolean> {
    this.#mustBeOpen();
    return await (typeof decision === "string" ? this.#refunds.refundById(decision) : this.#refunds.refund(decision));
  }

  /**
   * Gives units back to the counters that a check of the same attributes would charge, whoever was charged and wherever: for callers
   * that know neither decision nor id (Envoy's `is_negative_hits`). Never beyond an empty counter; how often is the caller's to know.
   * False if there was nothing to give back.
   */
  giveBack(attributes: Attributes, options: Pick<CheckOptions, "cost"> = NO_OPTIONS): Promise<boolean> {
    return this.giveBackAll([{ attributes, cost: options.cost }]);
  }

  /** The same for several attribute sets, each at its own cost. */
  async giveBackAll(parts: readonly CheckPart[]): Promise<boolean> {
    this.#mustBeOpen();
    const { checks } = this.#checksOf(parts);
    try {
      return await this.#store.giveBack(checks);
    } catch (error) {
      // While the store is away, rules with the policy `local` count here.
      if (this.#local.giveBack(checks)) return true;
      throw error;
    }
  }

  /** Forgets what a rule has counted for a key. */
  async reset(ruleId: string, attributes: Attributes): Promise<void> {
    this.#mustBeOpen();
    const keys = this.#book.keysOf(ruleId, attributes);
    await this.#store.reset(keys);
    this.#local.reset(keys);
  }

  /** Swaps the whole rule book. A document with mistakes throws and changes nothing. Counters live on where they can. */
  setRules(rules: readonly Rule[], version?: number): void {
    this.#mustBeOpen();
    const call = ++this.#swapCalls;
    this.#swap(runAtOnce(readingRules(rules)), { call, version });
  }

  /**
   * The same for many rules, in slices of a few milliseconds, between which checks are answered by the old rules. Resolves when
   * these rules are in force, or newer ones: of calls that overlap, `setRules` among them, the latest wins, whichever ends last.
   */
  async swapRules(rules: readonly Rule[], version?: number): Promise<void> {
    this.#mustBeOpen();
    const call = ++this.#swapCalls;
    this.#swap(await runInSlices(readingRules(rules)), { call, version });
  }

  #swap(compiled: CompiledRules, { call, version }: { call: number; version: number | undefined }): void {
    if (call < this.#bookCall) return;
    this.#bookCall = call;
    this.#book = new RuleBook(compiled, version ?? this.#book.version + 1);
    this.#countIfShared();
  }

  #countIfShared(): void {
    if (this.#instances !== undefined || this.#count !== undefined) return;
    if (this.#book.rules.some(({ onStoreFailure = DEFAULT_FAILURE_POLICY }) => onStoreFailure === "local")) {
      this.#count = this.#store.countInstances?.();
    }
  }

  /** Frees a lease by its id. False if it was not held any more. */
  async release(leaseId: string): Promise<boolean> {
    const { lease, local } = parseLeaseId(leaseId);
    const released = await (local ? this.#local : this.#store).release(lease);
    if (released) this.#emit("released", leaseId);
    return released;
  }

  /** Holds a lease for another term: ms until it now ends, 0 if it was lost. */
  async renew(leaseId: string): Promise<number> {
    const { lease, local } = parseLeaseId(leaseId);
    const expiresAfterMs = await (local ? this.#local : this.#store).renew(lease);
    this.#emit("renewed", leaseId, expiresAfterMs);
    return expiresAfterMs;
  }

  on<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#events.on(event, listener);
    this.#hasAudience = this.#events.listenerCount("decision") > 0;
    return this;
  }

  off<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#events.off(event, listener);
    this.#hasAudience = this.#events.listenerCount("decision") > 0;
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

  /** What a store in memory holds; undefined for another. */
  memoryUse(): MemoryUse | undefined {
    return this.#store.memory?.();
  }

  /** Why the store did not answer when `ready` asked it last: an error whose message names the remedy; undefined if it did. */
  get whyNotReady(): unknown {
    return this.#store.whyNotReady;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#outage.close();
    this.#local.close();
    await this.#count?.stop();
    await this.#store.close();
  }

  #checksOf(parts: readonly CheckPart[]): ReturnType<typeof joinChecks> {
    return joinChecks(
      parts.map(({ attributes, cost, charge, book = this.#book }) => {
        const checks = book.checks(attributes, cost);
        return charge === true ? asCharges(checks) : checks;
      }),
    );
  }

  #ask(attributes: Attributes, options: CheckOptions, charge: boolean): MaybePromise<Decision> {
    this.#mustBeOpen();
    const book = this.#book;
    return this.#askFor(book.checks(attributes, options.cost), book.version, { attributes, options, charge });
  }

  #askFor(checks: readonly Check[], rulesVersion: number, ask: AskOptions): MaybePromise<Decision> {
    const { attributes, options, charge, neverRefused = false } = ask;
    let leases = false;
    let named = false;
    for (let i = 0; i < checks.length; i++) {
      const { stored } = checks[i]!.plan.policy;
      if (stored === "concurrency") leases = placesFit(checks[i]!);
      else if (stored === "rolling-window") named = entriesFit(checks[i]!);
    }
    const id = options.id === undefined ? undefined : checkedId(options.id);
    const asked: Asked = {
      checks,
      charge,
      // Sorted sets keep a name per entry, and the record of an id the name of its charge.
      entryId: leases ? newLeaseId() : named || id !== undefined ? nextEntryId() : "",
      id,
      fingerprint: id === undefined ? "" : fingerprintOfAll(ask),
      rulesVersion,
      attributes,
      options,
      neverRefused,
      sinceMs: leases ? performance.now() : 0,
    };
    if (checks.length === 0) return this.#decided(asked, NOTHING_TO_DECIDE);
    const reply = this.#store.decide(asked);
    if (!(reply instanceof Promise)) return this.#decided(asked, reply);
    return reply.then(
      (answered) => this.#recovered(asked, answered),
      (error) => this.#answeredByPolicy(asked, error),
    );
  }

  #decided(asked: Asked, found: StoreReply): Decision {
    const reply = asked.neverRefused ? refusingNothing(found) : found;
    const lease = asked.sinceMs === 0 ? undefined : this.#leaseOf(asked, reply, "store");
    return this.#told(asked, new Decision({ request: asked, reply, charger: "store", lease, degraded: undefined }));
  }

  #recovered(asked: Asked, reply: StoreReply): Decision {
    if (this.#outage.isOn) this.#outage.decided();
    return this.#decided(asked, reply);
  }

  async #answeredByPolicy(asked: Asked, cause: unknown): Promise<Decision> {
    // The store is well; the caller is not.
    if (cause instanceof SluiceError && cause.code !== "store-unavailable") throw cause;
    this.#outage.failed(cause);
    const { checks, verdicts, degraded, nowMs } = await this.#failurePolicy.answer(asked);
    const request: Asked = { ...asked, checks };
    const found: StoreReply = { nowMs, verdicts, guarantee: "atomic" };
    const reply = asked.neverRefused ? refusingNothing(found) : found;
    const charger = degraded === "local" ? "local" : "nobody";
    const lease = asked.sinceMs === 0 ? undefined : this.#leaseOf(request, reply, charger);
    return this.#told(asked, new Decision({ request, reply, charger, lease, degraded }));
  }

  #leaseOf(asked: Asked, reply: StoreReply, charger: Charger): Lease | undefined {
    const { checks, entryId } = reply.repeated ?? asked;
    const places = placesOf(checks, (i) => (reply.verdicts[i]!.charged ? (reply.entryIds?.[i] ?? entryId) : undefined));
    if (places.length === 0) return undefined;
    // How long ago the lease began, if its request id was seen before.
    const ageMs = reply.repeated === undefined ? 0 : reply.repeated.atMs - reply.nowMs;
    return new Lease({
      id: spellLeaseId({ places }, charger === "local"),
      expiresAfterMs: Math.min(...places.map(({ ttlMs }) => ttlMs)),
      keeper: this,
      sinceMs: asked.sinceMs - ageMs,
    });
  }

  #told(asked: Asked, decision: Decision): Decision {
    // A peek decides nothing: whoever counts decisions must not count it.
    if (asked.charge && this.#hasAudience) {
      this.#emit("decision", decision, asked);
    }
    return decision;
  }

  #emit<E extends keyof LimiterEvents>(event: E, ...args: LimiterEvents[E]): void {
    try {
      this.#events.emit(event, ...args);
    } catch (error) {
      process.emitWarning(`a listener of "${event}" threw: ${String(error)}`, "SluiceWarning");
    }
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new SluiceError("closed", "the limiter is closed");
  }
}

function* readingRules(rules: readonly Rule[]): Sliced<CompiledRules> {
  return yield* compilingRules(yield* parsingRules(rules));
}

/** Rules that a part of `checkAll` brings along, compiled once. A document with mistakes throws. */
export function ruleBook(rules: readonly Rule[]): RuleBook {
  return new RuleBook(runAtOnce(readingRules(rules)), 0);
}

/** `createLimiter({ rules, store })`; without a store, counters live in this process. */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options);
}

function fingerprintOfAll({ attributes, options, neverRefused = false, parts }: AskOptions): string {
  return fingerprintOf(parts ?? [{ attributes, cost: options.cost, charge: neverRefused }]);
}
