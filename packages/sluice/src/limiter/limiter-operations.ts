/**
 * What a limiter does beside checks: rules, refunds, resets, blocks, leases, reservations, events, figures, the end.
 * In: calls of programs and of the service. Out: what its parts answer; a limiter that is closed throws `closed`.
 * No check passes through here: `limiter.ts`, which extends this class, is the life of a check.
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
import { checkedBlockLength } from "./check-input.js";
import type { CheckOptions, CheckPart } from "./check-request.js";
import type { Decision } from "./decision.js";
import { extensionDecision } from "./extension-decision.js";
import { joinChecks } from "./join-checks.js";
import type { LimiterEvents } from "./limiter-events.js";
import type { LimiterParts } from "./limiter-parts.js";
import { type OutsideUnits, outsideUnitsOf } from "./outside-units.js";
import type { WaitingKey, WaitingStats } from "./waits.js";

/** Of a report of utilisation. */
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

  /** Rules in force. */
  get rules(): readonly Rule[] {
    return this.#parts.rules.book.rules;
  }

  /** A rule in force, by its id; `rules` may hold a hundred thousand. */
  findRule(id: string): Rule | undefined {
    return this.#parts.rules.book.find(id);
  }

  get rulesVersion(): number {
    return this.#parts.rules.book.version;
  }

  /** Swaps the whole rule book. A document with mistakes throws and changes nothing. Counters live on where they can. */
  setRules(rules: readonly Rule[], version?: number): void {
    this.mustBeOpen();
    this.#parts.rules.set(rules, version);
  }

  /**
   * The same for many rules, in slices of a few milliseconds, between which checks are answered by the old rules. Resolves when
   * these rules are in force, or newer ones: of calls that overlap, `setRules` among them, the latest wins, whichever ends last.
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

  /** Gives back what a decision charged, once. By id it works from any instance, while the id is remembered. */
  async refund(decision: Decision | string): Promise<boolean> {
    this.mustBeOpen();
    const { refunds } = this.#parts;
    return await (typeof decision === "string" ? refunds.refundById(decision) : refunds.refund(decision));
  }

  /**
   * Gives units back to the counters that a check of the same attributes would charge, no matter which request charged them: for
   * callers that know neither decision nor id (Envoy's `is_negative_hits`). Never beyond an empty counter. The caller must know how
   * often. False if there was nothing to give back.
   */
  giveBack(attributes: Attributes, options: Pick<CheckOptions, "cost"> = {}): Promise<boolean> {
    return this.giveBackAll([{ attributes, cost: options.cost }]);
  }

  /** The same for several attribute sets, each at its own cost. */
  async giveBackAll(parts: readonly CheckPart[]): Promise<boolean> {
    this.mustBeOpen();
    const { refunds, rules } = this.#parts;
    const checks = parts.map(({ attributes, cost, charge, book = rules.book }) => {
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
   * Blocks a key of a rule with `blockFor`: refused for so long, as if its traffic had been. `reset` lifts a block, this one or one that
   * traffic began.
   */
  async block(ruleId: string, attributes: Attributes, lengthMs: number): Promise<void> {
    this.mustBeOpen();
    const { rules, store } = this.#parts;
    const key = rules.book.blockKeyOf(ruleId, attributes);
    await store.block(key, checkedBlockLength(lengthMs), { rule: ruleId, attributes });
  }

  /** Frees a lease by its id. False if it was not held any more. */
  release(leaseId: string): Promise<boolean> {
    return this.#parts.leases.release(leaseId);
  }

  /** Holds a lease for another term: ms until it now ends, 0 if it was lost. */
  renew(leaseId: string): Promise<number> {
    return this.#parts.leases.renew(leaseId);
  }

  /**
   * Tells what a reserved request really cost, by the cost attributes of its rules: the difference to what was held is given back or
   * charged, once. From any instance; safe to send again. Never throws for a store outage: the settlement is then kept, and sent later.
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
   * Holds more for a reservation, up to these costs in all, and begins its term anew. Refused where a rule with `overrun: stop` has no
   * room; a rule with `finish` goes into debt instead. Rejects with `unknown-reservation` if it is not open.
   */
  async extend(reservationId: string, attributes: Attributes): Promise<Decision> {
    this.mustBeOpen();
    const extension = await this.#parts.reservations.extend(reservationId, attributes);
    return extensionDecision(extension, this.rulesVersion);
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
    this.mustBeOpen();
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

  /** Whether the store answers now. Waits a second, or the store's deadline if that is longer, and never throws: checks work either way. */
  async ready(): Promise<boolean> {
    return !this.#closed && (await this.#parts.store.ready());
  }

  /** Why the store did not answer when `ready` asked it last: an error whose message names the remedy; undefined if it did. */
  get whyNotReady(): unknown {
    return this.#parts.store.whyNotReady;
  }

  /** How many requests wait in this process for a turn, by rule. */
  waitingStats(): WaitingStats {
    return this.#parts.waits.stats();
  }

  /** Which keys wait in this process, those with the most requests first. */
  waitingKeys(): WaitingKey[] {
    return this.#parts.waits.keys();
  }

  /** What the load-shedding rules in force see and shed. */
  sheddingStats(): SheddingStats[] {
    return this.#parts.shedder.stats().filter(({ rule }) => this.findRule(rule)?.algorithm === "load-shedding");
  }

  /** How the rules with `adapt` stand. */
  adaptiveStats(): AdaptiveStats[] {
    return this.#parts.adaptive.stats();
  }

  /** Figures about reservations since the start. */
  reservationStats(): ReservationStats {
    return this.#parts.reservations.stats();
  }

  /** What requests under a rule with `estimate` really cost, of all instances. Rejects where the store does not answer. */
  async learnedCosts(ruleId: string): Promise<LearnedCosts[]> {
    const { reservations, rules } = this.#parts;
    return await reservations.learned(rules.book.plansOf(ruleId));
  }

  /** The store's calls since its start; undefined where it makes none. */
  storeStats(): StoreStats | undefined {
    return this.#parts.store.stats?.();
  }

  /** Units fetched ahead, and how many decisions they made; undefined where the store is this process itself. */
  prefetchStats(): PrefetchStats | undefined {
    return this.#parts.prefetch?.stats();
  }

  /** This region's fetches from the global store; undefined without one. */
  regionStats(): RegionStats | undefined {
    return this.#parts.regional?.regionStats();
  }

  /** The contents of a store in memory; undefined for another. */
  memoryUse(): MemoryUse | undefined {
    return this.#parts.store.memory?.();
  }

  /** Blocked keys in a store in memory, up to a thousand; undefined for another. */
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

/** For `sluice/internal`: units that somebody outside this process holds. */
export const outsideUnits = LimiterOperations.outsideUnits;
