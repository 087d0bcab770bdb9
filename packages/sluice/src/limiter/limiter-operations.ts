/**
 * What a limiter does besides checks: rules, refunds, resets, blocks, leases, reservations, events, stats, close. In: calls from programs
 * and from the service. Out: the answers of its parts; a closed limiter throws `closed`. No check passes through here: `limiter.ts`, which
 * extends this class, is the life of a check.
 */
import type { Settlement } from "../decision.js";
import { SluiceError } from "../errors.js";
import type { PrefetchStats } from "../prefetch/prefetch.js";
import type { RegionStats } from "../regions/home-fetches.js";
import type { LearnedCosts } from "../reservations/estimates.js";
import type { ReservationStats } from "../reservations/reservation-counts.js";
import type { Attributes, Rule } from "../rules/rule.js";
import type { SheddingStats } from "../shedding/load-shedder.js";
import { DEFAULT_REPORT_TTL_MS, LOOP_KEY } from "../shedding/utilisation-reports.js";
import type { MemoryUse } from "../store/memory/memory-limit.js";
import type { BlockedKey } from "../store/store.js";
import type { StoreStats } from "../store/store-stats.js";
import type { AdaptiveStats } from "./adaptive-limits.js";
import { asCharges } from "./charges.js";
import { checkedBlockLength, checkedOptions, checkedParts } from "./check-input.js";
import type { CheckOptions, CheckPart } from "./check-request.js";
import type { Decision } from "./decision.js";
import { extensionDecision } from "./extension-decision.js";
import { joinChecks } from "./join-checks.js";
import type { LimiterEvents } from "./limiter-events.js";
import type { LimiterParts } from "./limiter-parts.js";
import { type OutsideUnits, outsideUnitsOf } from "./outside-units.js";
import type { WaitingKey, WaitingStats } from "./waits.js";

/** Options of a utilisation report. */
export interface UtilisationOptions {
  /** Which backend or part of the program reports. */
  source: string;
  key?: string;
  ttlMs?: number;
}

export class LimiterOperations {
  readonly #parts: LimiterParts;
  #closed = false;

  constructor(parts: LimiterParts) {
    this.#parts = parts;
  }

  get rules(): readonly Rule[] {
    return this.#parts.rules.book.rules;
  }

  /** A rule in force, by its id. Use this instead of `rules`, which may hold a hundred thousand. */
  findRule(id: string): Rule | undefined {
    return this.#parts.rules.book.find(id);
  }

  get rulesVersion(): number {
    return this.#parts.rules.book.version;
  }

  /** Swaps the whole rule book. A document with mistakes throws and changes nothing. Counters survive where they can. */
  setRules(rules: readonly Rule[], version?: number): void {
    this.mustBeOpen();
    this.#parts.rules.set(rules, version);
  }

  /**
   * `setRules` for many rules: works in slices of a few milliseconds, between which the old rules still decide. Resolves when these rules
   * or newer ones are in force: of overlapping calls (`setRules` included) the latest call wins, whichever finishes last.
   */
  async swapRules(rules: readonly Rule[], version?: number): Promise<void> {
    this.mustBeOpen();
    await this.#parts.rules.swap(rules, version);
  }

  static async swapValidatedRules(limiter: LimiterOperations, rules: readonly Rule[], version?: number): Promise<void> {
    limiter.mustBeOpen();
    await limiter.#parts.rules.swapValidated(rules, version);
  }

  static outsideUnits(limiter: LimiterOperations): OutsideUnits {
    return outsideUnitsOf(() => {
      limiter.mustBeOpen();
      const { rules, store } = limiter.#parts;
      return { book: rules.book, store };
    });
  }

  /** Gives back what a decision charged, once. An id works from any instance, while it is remembered. */
  async refund(decision: Decision | string): Promise<boolean> {
    this.mustBeOpen();
    const { refunds } = this.#parts;
    return await (typeof decision === "string" ? refunds.refundById(decision) : refunds.refund(decision));
  }

  /**
   * Gives units back to the counters that a check of these attributes would charge, whichever request charged them: for callers that know
   * neither decision nor id (Envoy's `is_negative_hits`). Never goes below an empty counter. Not idempotent: the caller decides how often.
   * False if there was nothing to give back.
   */
  async giveBack(attributes: Attributes, options: Pick<CheckOptions, "cost"> = {}): Promise<boolean> {
    return await this.giveBackAll([{ attributes, cost: checkedOptions(options).cost }]);
  }

  /** `giveBack` for several attribute sets, each at its own cost. */
  async giveBackAll(parts: readonly CheckPart[]): Promise<boolean> {
    this.mustBeOpen();
    const { refunds, rules } = this.#parts;
    const checks = checkedParts(parts).map(({ attributes, cost, charge, book = rules.book }) => {
      const found = book.checks(attributes, cost);
      return charge === true ? asCharges(found) : found;
    });
    return await refunds.giveBack(joinChecks(checks).checks, parts);
  }

  /** Forgets what a rule has counted for a key. */
  async reset(ruleId: string, attributes: Attributes): Promise<void> {
    this.mustBeOpen();
    const { rules, prefetch, store, local } = this.#parts;
    const keys = rules.book.keysOf(ruleId, attributes);
    const forgetUses = prefetch?.beforeReset(keys);
    await store.reset(keys, { rule: ruleId, attributes });
    forgetUses?.();
    local.reset(keys);
  }

  /**
   * Blocks a key of a rule with `blockFor` for this long, as if its traffic had caused the block. `reset` lifts a block, whatever began it.
   */
  async block(ruleId: string, attributes: Attributes, lengthMs: number): Promise<void> {
    this.mustBeOpen();
    const { rules, store } = this.#parts;
    const key = rules.book.blockKeyOf(ruleId, attributes);
    await store.block(key, checkedBlockLength(lengthMs), { rule: ruleId, attributes });
  }

  /** Frees a lease by its id. False if it was no longer held. */
  release(leaseId: string): Promise<boolean> {
    return this.#parts.leases.release(leaseId);
  }

  /** Renews a lease for another term. Returns the milliseconds until it ends now, 0 if it was lost. */
  renew(leaseId: string): Promise<number> {
    return this.#parts.leases.renew(leaseId);
  }

  /**
   * Reports what a reserved request really cost, by the cost attributes of its rules. The difference from what was held is given back or
   * charged, once. Works from any instance and is idempotent. Never throws for a store outage: the settlement is kept and sent later.
   */
  async settle(reservationId: string, attributes: Attributes): Promise<Settlement> {
    this.mustBeOpen();
    return await this.#parts.reservations.settle(reservationId, attributes);
  }

  /** Settles a reservation at 0: the work was not done. */
  async cancel(reservationId: string): Promise<Settlement> {
    this.mustBeOpen();
    return await this.#parts.reservations.cancel(reservationId);
  }

  /**
   * Holds more for a reservation, up to these total costs, and renews its term. Refused if a rule with `overrun: stop` has no room; a rule
   * with `finish` goes into debt instead. Rejects with `unknown-reservation` if it is not open.
   */
  async extend(reservationId: string, attributes: Attributes): Promise<Decision> {
    this.mustBeOpen();
    const extension = await this.#parts.reservations.extend(reservationId, attributes);
    return extensionDecision(extension, this.rulesVersion);
  }

  /**
   * Reports how busy a backend or this program is, from 0 to 1, for load-shedding rules with the signal `reported`. The highest report
   * among all sources counts; each is valid for `ttlMs` (default 10 s). `key`: applies only to the gauge of these key values, joined by
   * commas. Takes effect here at once. Resolves to whether the store's other instances can see it, and never rejects. An invalid value
   * throws.
   */
  reportUtilisation(value: number, options: UtilisationOptions): Promise<boolean> {
    this.mustBeOpen();
    const { source, key = "", ttlMs = DEFAULT_REPORT_TTL_MS } = checkedOptions(options, '{ source: "db-1" }');
    if (key === LOOP_KEY)
      throw new SluiceError("invalid-request", `key: ${LOOP_KEY} is what instances report themselves`);
    return this.#parts.reports.report({ value, source, key, ttlMs });
  }

  on<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#parts.events.on(event, listener);
    return this;
  }

  off<E extends keyof LimiterEvents>(event: E, listener: (...args: LimiterEvents[E]) => void): this {
    this.#parts.events.off(event, listener);
    return this;
  }

  /**
   * Whether the store answers now. Waits up to a second, or up to the store's deadline if that is longer. Never throws: checks work either
   * way.
   */
  async ready(): Promise<boolean> {
    return !this.#closed && (await this.#parts.store.ready());
  }

  /** Why the store did not answer the last `ready`: an error whose message names the remedy. Undefined if it did answer. */
  get whyNotReady(): unknown {
    return this.#parts.store.whyNotReady;
  }

  /** How many requests wait in this process for their turn, by rule. */
  waitingStats(): WaitingStats {
    return this.#parts.waits.stats();
  }

  /** The keys that wait in this process, those with the most requests first. */
  waitingKeys(): WaitingKey[] {
    return this.#parts.waits.keys();
  }

  /** What the load-shedding rules in force measure and shed. */
  sheddingStats(): SheddingStats[] {
    return this.#parts.shedder.stats().filter(({ rule }) => this.findRule(rule)?.algorithm === "load-shedding");
  }

  /** The state of the rules with `adapt`. */
  adaptiveStats(): AdaptiveStats[] {
    return this.#parts.adaptive.stats();
  }

  /** Counts of reservations since the start. */
  reservationStats(): ReservationStats {
    return this.#parts.reservations.stats();
  }

  /** What requests under a rule with `estimate` really cost, over all instances. Rejects if the store does not answer. */
  async learnedCosts(ruleId: string): Promise<LearnedCosts[]> {
    const { reservations, rules } = this.#parts;
    return await reservations.learned(rules.book.plansOf(ruleId));
  }

  /** The store's calls since the start; undefined for a store that makes none. */
  storeStats(): StoreStats | undefined {
    return this.#parts.store.stats?.();
  }

  /** Prefetched units, and how many decisions they made; undefined if the store is in this process. */
  prefetchStats(): PrefetchStats | undefined {
    return this.#parts.prefetch?.stats();
  }

  /** This region's fetches from the global store; undefined if there is none. */
  regionStats(): RegionStats | undefined {
    return this.#parts.regional?.regionStats();
  }

  /** The contents of a memory store; undefined for other stores. */
  memoryUse(): MemoryUse | undefined {
    return this.#parts.store.memory?.();
  }

  /** Blocked keys in a memory store, up to a thousand; undefined for other stores. */
  blocksInMemory(rule?: string): readonly BlockedKey[] | undefined {
    return this.#parts.store.blocks?.(rule);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const { waits, outage, local, reports, adaptive, prefetch, reservations, share, store } = this.#parts;
    waits.close();
    outage.close();
    local.close();
    reports.close();
    adaptive.close();
    await prefetch?.close();
    await reservations.close();
    await share.stop();
    await store.close();
  }

  protected mustBeOpen(): void {
    if (this.#closed) throw new SluiceError("closed", "the limiter is closed");
  }
}

/** For `sluice/internal`: `swapRules` for rules that `parseRules` returned, which need no second validation. */
export const swapValidatedRules = LimiterOperations.swapValidatedRules;

/** For `sluice/internal`: units that are held outside this process. */
export const outsideUnits = LimiterOperations.outsideUnits;
