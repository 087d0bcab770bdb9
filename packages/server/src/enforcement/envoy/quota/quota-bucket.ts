/**
 * One quota bucket of one Envoy: what it was assigned, what it reported, and what it gets next.
 *
 * The steps of a report:
 *   1. settle the requests that passed: units in hand cover them, or they are charged     rules that hand out no units are always charged
 *   2. if the units in hand are enough, extend them                                       ended by the store: step 3
 *   3. fetch new units, which replace those in hand                                       nothing left: extend those in hand, or DENY_ALL
 * If the store does not answer, there is no assignment: Envoy's expired-assignment behaviour applies when the last one ends.
 *
 * Every unit that an Envoy may hold is reserved in the store, in the counter that checks use (docs/prefetch.md).
 */
import { type Attributes, SluiceError } from "sluice";
import { type Check, mostUnits, type OutsideUnits } from "sluice/internal";
import { QuotaDemand } from "./quota-demand.js";
import { type BucketAction, type BucketId, spellAction } from "./quota-messages.js";
import { UnitLedger } from "./unit-ledger.js";

/** The outcome of a report; `none` leaves requests to Envoy's own behaviour. */
export type QuotaOutcome = "units" | "extended" | "denied" | "unlimited" | "none";

/** Requests since the last report. */
interface Usage {
  readonly allowed: number;
  readonly denied: number;
}

export interface Assigned {
  readonly outcome: QuotaOutcome;
  readonly actions: readonly BucketAction[];
  /** The rule that cannot be handed out, if that is why there is no assignment. */
  readonly unfit?: string;
}

/** Envoy counts a TTL from its arrival, in whole seconds: allow a second for delivery, and for clock drift. */
const DELIVERY_MS = 1_000;
const DRIFT = 0.02;
/** A shorter term would leave an assignment of less than a second. */
const SHORTEST_TERM_MS = 2_100;
/** TTL of assignments without units, which keep applying if this service goes away. */
const DENIED_SECONDS = 10;
const UNLIMITED_SECONDS = 60;
/** The store grants at most half of what is left per fetch. */
const MOST_FETCHES = 3;
/** Beyond this multiple of the demand, units in hand are missing elsewhere. */
const MOST_WANTED = 4;
const MALFORMED_VALUES = new Set(["invalid-request", "too-complex"]);
/** How long before an assignment ends it is renewed: longer than a message takes. */
const RENEW_BEFORE_MS = 2_000;
const SOONEST_RENEWAL_MS = 1_000;
const LATEST_RENEWAL_MS = 6_000;

/** The units held of one rule. */
interface Hold {
  check: Check;
  readonly holder: string;
  readonly ledger: UnitLedger;
  seq: number;
  /** Total of all reports, in units of the rule. */
  used: number;
}

interface Fetched {
  readonly requests: number;
  readonly lifeMs: number;
  readonly resetAfterMs: number;
  readonly isEnded: boolean;
}

export interface QuotaBucketOptions {
  readonly id: BucketId;
  readonly attributes: Attributes;
  readonly units: OutsideUnits;
  /** Rules that do not apply to Envoy traffic. */
  readonly isLeftOut: (ruleId: string) => boolean;
  readonly newHolder: () => string;
  readonly now: () => number;
}

export class QuotaBucket {
  readonly id: BucketId;
  readonly #options: QuotaBucketOptions;
  readonly #demand = new QuotaDemand();
  readonly #holds = new Map<string, Hold>();
  /** Charges that the store has not confirmed yet, by key. */
  readonly #owed = new Map<string, Check>();
  #last: Promise<unknown> = Promise.resolve();
  /** Units and end of the assignment in force, if it has units. */
  #live: { readonly units: number; endsAtMonotonicMs: number } | undefined;
  /** When it needs another assignment, unless a report comes first. */
  dueMonotonicMs = Number.POSITIVE_INFINITY;
  /** When a report last included a request. */
  activeMonotonicMs: number;

  constructor(options: QuotaBucketOptions) {
    this.id = options.id;
    this.#options = options;
    this.activeMonotonicMs = options.now();
  }

  report(usage: Usage): Promise<Assigned> {
    return this.#inTurn(() => this.#report(usage));
  }

  /** Renews without a report. `anew`: the rules have changed, so units in hand must be replaced. */
  renew(options: { anew?: boolean } = {}): Promise<Assigned> {
    return this.#inTurn(() => this.#renew(options));
  }

  /** The last actions were not sent, so Envoy may lack the assignment: extending it would give Envoy a full bucket again. */
  unsent(): void {
    this.#live = undefined;
  }

  /** Serialises reports and renewals: concurrent fetches would share a sequence number. */
  #inTurn(work: () => Promise<Assigned>): Promise<Assigned> {
    const mine = this.#last.then(work).catch((error: unknown) => {
      // Ids often contain client input, which must not get a client past the limits by being impossible to match.
      if (error instanceof SluiceError && MALFORMED_VALUES.has(error.code)) return this.#deny(LATEST_RENEWAL_MS);
      throw error;
    });
    this.#last = mine.catch(() => undefined);
    return mine;
  }

  async #report({ allowed, denied }: Usage): Promise<Assigned> {
    const nowMonotonicMs = this.#options.now();
    if (allowed + denied > 0) this.activeMonotonicMs = nowMonotonicMs;
    this.#demand.report(allowed + denied, nowMonotonicMs);
    const { handedOut, counted } = this.#checks();
    for (const check of counted) this.#owe(check, allowed);
    for (const hold of this.#holdsOf(handedOut)) {
      const { used, uncovered } = hold.ledger.report(allowed, nowMonotonicMs);
      hold.used += used * hold.check.cost;
      this.#owe(hold.check, uncovered);
    }
    if (this.#owed.size > 0) await this.#options.units.charge([...this.#owed.values()]);
    this.#owed.clear();
    return await this.#renew();
  }

  /** At most one full limit per report: more would only deepen the debt, at the Envoy's whim. */
  #owe(check: Check, requests: number): void {
    const { key } = check;
    const cost = requests * check.cost + (this.#owed.get(key)?.cost ?? 0);
    if (cost > 0) this.#owed.set(key, { ...check, cost: Math.min(cost, Math.max(1, mostUnits(check))) });
  }

  async #renew({ anew = false } = {}): Promise<Assigned> {
    const { handedOut, unfit } = this.#checks();
    const nowMonotonicMs = this.#options.now();
    if (unfit !== undefined) {
      this.#live = undefined;
      this.dueMonotonicMs = Number.POSITIVE_INFINITY;
      return { outcome: "none", actions: [], unfit };
    }
    if (handedOut.some(({ plan }) => plan.policy.limit === 0)) return this.#deny(LATEST_RENEWAL_MS);
    if (handedOut.length === 0) {
      this.#live = undefined;
      this.dueMonotonicMs = nowMonotonicMs + (UNLIMITED_SECONDS * 1_000) / 2;
      return { outcome: "unlimited", actions: spellAction.allowAll(this.id, UNLIMITED_SECONDS) };
    }
    const holds = this.#holdsOf(handedOut);
    const wanted = this.#demand.wanted(handedOut);
    const inHand = Math.min(...holds.map(({ ledger }) => ledger.inHand));
    const isEnough = inHand >= wanted / 2 && inHand <= wanted * MOST_WANTED;
    if (isEnough && !anew && this.#isLive()) {
      const extended = await this.#extend(holds);
      if (extended !== undefined) return extended;
    }
    return await this.#replace(holds, { wanted, anew });
  }

  async #extend(holds: readonly Hold[]): Promise<Assigned | undefined> {
    const sentMonotonicMs = this.#options.now();
    const fetched = await Promise.all(holds.map((hold) => this.#fetch(hold, 0, 0)));
    return fetched.some(({ isEnded }) => isEnded) ? undefined : this.#extended(holds, fetched, sentMonotonicMs);
  }

  #extended(holds: readonly Hold[], fetched: readonly Fetched[], sentMonotonicMs: number): Assigned | undefined {
    const lifeMs = Math.min(...fetched.map((one) => one.lifeMs));
    const seconds = this.#secondsOf(lifeMs, sentMonotonicMs);
    const live = this.#live;
    if (seconds < 1 || live === undefined) return undefined;
    for (const { ledger } of holds) ledger.extend(sentMonotonicMs + lifeMs);
    this.#assigned(live.units, seconds, sentMonotonicMs);
    return { outcome: "extended", actions: spellAction.extend(this.id, seconds, live.units) };
  }

  async #replace(holds: readonly Hold[], { wanted, anew }: { wanted: number; anew: boolean }): Promise<Assigned> {
    const sentMonotonicMs = this.#options.now();
    const fetched = await Promise.all(holds.map((hold) => this.#fetchAll(hold, wanted)));
    const units = Math.min(...fetched.map(({ requests }) => requests));
    const lifeMs = Math.min(...fetched.map((one) => one.lifeMs));
    const inHand = Math.min(...holds.map(({ ledger }) => ledger.inHand));
    // Fewer units than are in hand, and those are not too many: extend them; the grant returns with the next fetch.
    if (!anew && units <= inHand && inHand <= wanted * MOST_WANTED && this.#isLive()) {
      const extended = this.#extended(holds, fetched, sentMonotonicMs);
      if (extended !== undefined) return extended;
    }
    const seconds = this.#secondsOf(lifeMs, sentMonotonicMs);
    if (units === 0 || seconds < 1) {
      return this.#deny(units === 0 ? Math.max(...fetched.map((one) => one.resetAfterMs)) : lifeMs);
    }
    for (const { ledger } of holds) ledger.assign(units, sentMonotonicMs + lifeMs);
    this.#assigned(units, seconds, sentMonotonicMs);
    return { outcome: "units", actions: spellAction.units(this.id, seconds, units) };
  }

  /** Denies until units may be available again, as far as that is known. */
  #deny(againAfterMs: number): Assigned {
    this.#live = undefined;
    const waitMs = Math.min(LATEST_RENEWAL_MS, Math.max(SOONEST_RENEWAL_MS, againAfterMs));
    this.dueMonotonicMs = this.#options.now() + waitMs;
    return { outcome: "denied", actions: spellAction.denyAll(this.id, DENIED_SECONDS) };
  }

  async #fetchAll(hold: Hold, wanted: number): Promise<Fetched> {
    let fetched = await this.#fetch(hold, wanted, 0);
    for (let i = 1; i < MOST_FETCHES && fetched.requests < wanted; i++) {
      const more = await this.#fetch(hold, wanted - fetched.requests, fetched.requests);
      if (more.requests === 0 || more.isEnded) break;
      fetched = { ...more, requests: fetched.requests + more.requests };
    }
    return fetched;
  }

  /** `kept`: requests granted a moment ago and about to be assigned. */
  async #fetch(hold: Hold, wanted: number, kept: number): Promise<Fetched> {
    const { check, holder, ledger, used } = hold;
    const { cost } = check;
    const held = (ledger.inHand + kept) * cost;
    const fetch = { holder, seq: ++hold.seq, used, held, want: wanted * cost };
    const { grant, verdict } = await this.#options.units.fetch(check, fetch);
    const isEnded = grant.kept < held;
    if (isEnded) ledger.end();
    return {
      requests: Math.floor(grant.units / cost),
      lifeMs: grant.lifeMs,
      resetAfterMs: verdict.resetAfterMs,
      isEnded,
    };
  }

  #assigned(units: number, seconds: number, sentMonotonicMs: number): void {
    const endsAtMonotonicMs = sentMonotonicMs + seconds * 1_000;
    this.#live = { units, endsAtMonotonicMs };
    this.dueMonotonicMs = endsAtMonotonicMs - Math.min(RENEW_BEFORE_MS, seconds * 500);
  }

  /** Whether Envoy still has the assignment when the next message arrives: extending an expired one would give it a full bucket. */
  #isLive(): boolean {
    return this.#live !== undefined && this.#live.endsAtMonotonicMs > this.#options.now() + DELIVERY_MS;
  }

  #secondsOf(lifeMs: number, sentMonotonicMs: number): number {
    const spentMs = this.#options.now() - sentMonotonicMs;
    return Math.floor((lifeMs * (1 - DRIFT) - spentMs - DELIVERY_MS) / 1_000);
  }

  /**
   * Splits the checks into rules whose units are handed out, and rules that only count: shadow mode, candidates, and all of them if an
   * enforced one has no units to hand out.
   */
  #checks(): { handedOut: Check[]; counted: Check[]; unfit: string | undefined } {
    const { units, attributes, isLeftOut } = this.#options;
    const checks = units.checks(attributes).filter(({ plan, cost }) => cost > 0 && !isLeftOut(plan.rule));
    const limits = checks.filter(({ plan, live }) => plan.mode === "enforce" && live === -1);
    const unfit = limits.find(({ plan }) => plan.policy.limit > 0 && plan.prefetchMs < SHORTEST_TERM_MS)?.plan.rule;
    const handedOut = unfit === undefined ? limits : [];
    return { handedOut, counted: checks.filter((check) => !handedOut.includes(check)), unfit };
  }

  /** Drops holds of rules that no longer apply: the store ends their units by itself. */
  #holdsOf(checks: readonly Check[]): Hold[] {
    const found = checks.map((check) => {
      const known = this.#holds.get(check.key);
      // If the cost per request has changed, requests in hand no longer convert to units.
      if (known !== undefined && known.check.cost === check.cost) return Object.assign(known, { check });
      return { check, holder: this.#options.newHolder(), ledger: new UnitLedger(), seq: 0, used: 0 };
    });
    this.#holds.clear();
    for (const hold of found) this.#holds.set(hold.check.key, hold);
    return found;
  }
}
