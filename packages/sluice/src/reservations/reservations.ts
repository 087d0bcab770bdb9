/**
 * Reservations: units held for requests whose cost is known only afterwards, until that cost is reported.
 *
 * Life of a reservation: a check holds an estimate -> extended, if the work turns out larger -> settled at the real cost: the difference is
 * given back or charged. If it is never settled, it expires, and what it held counts as spent. It lives in the store, or in the local
 * fallback of the instance that made it; its id encodes which. Any instance can settle it by its id, once.
 */
import { type Verdict, verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import type { CheckMode, Degraded, Reservation, Settlement } from "../decision.js";
import { SluiceError } from "../errors.js";
import { costIn, invalid, readAttribute } from "../rules/attribute-reader.js";
import type { Attributes } from "../rules/rule.js";
import {
  type Amounts,
  chargingPolicy,
  type ExtendReply,
  type HeldCounter,
  heldCounters,
  type ReservationState,
  type Reserved,
  type SettleReply,
} from "../store/reserved.js";
import type { Store, StoreReply, StoreRequest } from "../store/store.js";
import { Estimates, type LearnedCosts } from "./estimates.js";
import { KeptSettlements, type Settling } from "./kept-settlements.js";
import { OpenReservations } from "./open-reservations.js";
import { ReservationCounts, type ReservationStats } from "./reservation-counts.js";
import { parseReservationId, spellReservationId } from "./reservation-id.js";
import { nextSettlementName } from "./settlement-name.js";

/** As for checks that a failure policy refused. */
const RETRY_AFTER_OUTAGE_MS = 1_000;
/** Per rule, in one read. */
const MOST_CLASSES_READ = 10;

/** What a check holds now, and how that worked out before. */
export interface ExplainedEstimate {
  readonly holds: number;
  /** The quantile of what requests of the key's class cost, once enough is known. */
  readonly learned?: number;
  /** Units of the rule, over all keys, through this instance since its start: held, settled, and settled in excess of what was held. */
  readonly held: number;
  readonly settled: number;
  readonly overrun: number;
}

/** What a limiter needs to make the decision about an extension. */
export interface Extension {
  readonly counters: readonly HeldCounter[];
  readonly verdicts: readonly Verdict[];
  readonly nowMs: number;
  readonly reservation: Reservation | undefined;
  readonly degraded: Degraded | undefined;
}

interface ReservationsOptions {
  readonly store: Store;
  /** Where the failure policy `local` counts. */
  readonly local: Store;
  /** A counter's numbers under the rules in force. */
  readonly policyNow: (counter: HeldCounter) => Policy;
  readonly onSettled: (id: string, settlement: Settlement) => void;
  readonly onExpired: (id: string, held: Readonly<Record<string, number>>) => void;
}

export class Reservations {
  readonly #store: Store;
  readonly #local: Store;
  readonly #options: ReservationsOptions;
  readonly #kept: KeptSettlements;
  readonly #open: OpenReservations;
  readonly #counts = new ReservationCounts();
  readonly estimates: Estimates;

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#local = options.local;
    this.estimates = new Estimates(options.store);
    this.#kept = new KeptSettlements({
      send: async ({ reserved, amounts, name }) =>
        await this.#store.settle(this.#underRulesNow(reserved), amounts, name),
      onAnswered: (kept, reply) => void this.#settled(kept, reply, reply.isOwn),
    });
    this.#open = new OpenReservations({
      hasExpired: async (reserved) => (await this.#store.holdState(reserved)) === "expired",
      onExpired: (id, held) => {
        this.#counts.expired++;
        options.onExpired(id, held);
      },
    });
  }

  /** The reservation of a decision, if the request passed and any of its checks holds units. */
  of(request: StoreRequest, reply: StoreReply, isLocal: boolean): Reservation | undefined {
    if (!request.charge) return undefined;
    const { checks, entryId } = reply.repeated ?? request;
    const { verdicts, entryIds } = reply;
    const found = reservedBy({ checks, verdicts, entryIds, entryId }, isLocal);
    if (found === undefined) return undefined;
    const { id, reserved, units } = found;
    const ageMs = reply.repeated === undefined ? 0 : reply.repeated.atMs - reply.nowMs;
    const held = byRule(reserved.counters, units);
    if (reply.repeated === undefined && !isLocal) this.#open.add({ id, reserved, held });
    if (reply.repeated === undefined) this.#counts.opened(held);
    const mayOverrun = overrunsOf(checks, held);
    const expiresAfterMs = Math.max(0, reserved.ttlMs - ageMs);
    return mayOverrun === undefined ? { id, expiresAfterMs, held } : { id, expiresAfterMs, held, mayOverrun };
  }

  /** Charges what the work really cost. While the store does not answer, the settlement is kept and sent later. */
  async settle(id: string, attributes: Attributes): Promise<Settlement> {
    const { reserved, local } = parseReservationId(id);
    return await this.#settle(id, reserved, { amounts: amountsIn(reserved, attributes), local });
  }

  /** The work was not done: everything that was held is given back. */
  async cancel(id: string): Promise<Settlement> {
    const { reserved, local } = parseReservationId(id);
    const amounts = new Map(reserved.counters.map(({ cost }) => [cost, 0]));
    return await this.#settle(id, reserved, { amounts, local });
  }

  /** The same for a decision that is refunded: what it held is given back with the rest. */
  async cancelHeldBy(decided: Decided, isLocal: boolean): Promise<void> {
    const found = reservedBy(decided, isLocal);
    if (found !== undefined) await this.cancel(found.id);
  }

  async extend(id: string, attributes: Attributes): Promise<Extension> {
    const { reserved: made, local } = parseReservationId(id);
    const amounts = amountsIn(made, attributes);
    const reserved = local ? made : this.#underRulesNow(made);
    const { ttlMs } = reserved;
    // The decision reports the numbers that decided it.
    const counters = reserved.counters.map((counter) => ({ ...counter, policy: chargingPolicy(counter) }));
    let reply: ExtendReply;
    try {
      reply = await (local ? this.#local : this.#store).extend(reserved, amounts);
    } catch (error) {
      if (!(error instanceof SluiceError) || error.code !== "store-unavailable") throw error;
      return extendedByPolicy(counters);
    }
    const { nowMs, verdicts, state } = reply;
    if (state !== "open") throw notOpen(state);
    const held = byRule(counters, reply.held);
    if (counters.some(({ mode }, i) => mode === "enforce" && !verdicts[i]!.allowed))
      return { counters, verdicts, nowMs, reservation: undefined, degraded: undefined };
    if (!local) this.#open.add({ id, reserved: made, held });
    return { counters, verdicts, nowMs, reservation: { id, expiresAfterMs: ttlMs, held }, degraded: undefined };
  }

  /** The check's plan must have an estimate. */
  explain({ plan, held }: Check): ExplainedEstimate {
    const learned = this.estimates.learnedOf(plan);
    const units = this.#counts.of(plan.rule);
    return {
      holds: this.estimates.unitsToHold(plan, held?.said),
      ...(learned !== undefined && { learned }),
      held: units?.held ?? 0,
      settled: units?.charged ?? 0,
      overrun: units?.overrun ?? 0,
    };
  }

  /** What was learned about a rule's classes of keys, the rule's own first. Rejects if the store does not answer. */
  async learned(plans: readonly CheckPlan[]): Promise<LearnedCosts[]> {
    const byClass = new Map(plans.flatMap((plan) => (plan.estimate ? [[plan.estimate.keyClass, plan]] : [])));
    const sorted = [...byClass].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, plan]) => plan);
    return await Promise.all(sorted.slice(0, MOST_CLASSES_READ).map((plan) => this.estimates.read(plan)));
  }

  stats(): ReservationStats {
    return this.#counts.read({ open: this.#open.count, kept: this.#kept.count, dropped: this.#kept.dropped });
  }

  async close(): Promise<void> {
    this.#open.close();
    await Promise.all([this.#kept.close(), this.estimates.close()]);
  }

  async #settle(
    id: string,
    reserved: Reserved,
    { amounts, local }: { amounts: Amounts; local: boolean },
  ): Promise<Settlement> {
    const kept = this.#kept.nameOf(id);
    // A retry uses the name of the kept settlement, so that only one of the two counts.
    const settling: Settling = { id, reserved, amounts, name: kept ?? nextSettlementName() };
    if (local) {
      const reply = await this.#local.settle(reserved, amounts, settling.name);
      return this.#settled(settling, reply, reply.isOwn);
    }
    try {
      const reply = await this.#store.settle(this.#underRulesNow(reserved), amounts, settling.name);
      return this.#settled(settling, reply, reply.isOwn && (kept === undefined || this.#kept.take(settling)));
    } catch (error) {
      if (!(error instanceof SluiceError) || error.code !== "store-unavailable") throw error;
      const isOwn = this.#open.has(id, reserved);
      this.#kept.keep({ ...settling, isOwn, endsAtMonotonicMs: performance.now() + reserved.ttlMs });
      return { settled: false, charged: {}, overrun: {}, reason: "pending" };
    }
  }

  /** The fallback counts at this instance's share, not by a rule's own numbers: its reservations keep theirs. */
  #underRulesNow(reserved: Reserved): Reserved {
    const counters = reserved.counters.map((counter): HeldCounter => {
      const policyNow = this.#options.policyNow(counter);
      return policyNow === counter.policy ? counter : { ...counter, policyNow };
    });
    return { ...reserved, counters };
  }

  /** `counts`: the store took this settlement, and that was not known before. */
  #settled({ id, reserved, amounts }: Settling, { counters }: SettleReply, counts: boolean): Settlement {
    const settlement = settlementOf(reserved.counters, counters);
    // An expired one is reported when its term ends.
    if (settlement.reason !== "expired") this.#open.remove(id, reserved);
    if (!counts) return settlement;
    this.#counts.settled(settlement);
    reserved.counters.forEach(({ mode, rule, keyClass, cost }, i) => {
      // A cost that was not reported stands as held, which is our own estimate; a cost of 0 is cancelled work, which says nothing about
      // real costs.
      const { charged, state } = counters[i]!;
      const isTold = amounts.get(cost) === charged && charged > 0;
      if (mode !== "candidate" && state === "settled" && isTold) this.estimates.add(rule, keyClass, charged);
    });
    this.#options.onSettled(id, settlement);
    return settlement;
  }
}

/** While the store does not answer: work that may finish goes on; work that must stop when nothing is left stops. */
function extendedByPolicy(counters: readonly HeldCounter[]): Extension {
  const verdicts = counters.map(({ finishes, policy }) =>
    finishes
      ? verdict(true, policy.limit, 0, 0, undefined)
      : verdict(false, 0, RETRY_AFTER_OUTAGE_MS, 0, "store-unavailable"),
  );
  const degraded = verdicts.every(({ allowed }) => allowed) ? "allow" : "deny";
  return { counters, verdicts, nowMs: 0, reservation: undefined, degraded };
}

function notOpen(state: ReservationState): SluiceError {
  const why = { settled: "was settled", expired: "has expired", unknown: "is not known", open: "is open" }[state];
  return new SluiceError("unknown-reservation", `reservation: expected one that is open, got one that ${why}`);
}

/** What a decision was made from. */
interface Decided {
  readonly checks: readonly Check[];
  readonly verdicts: readonly Verdict[];
  readonly entryId: string;
  readonly entryIds?: readonly string[] | undefined;
}

/** What a request holds, if it passed and holds anything: the reservation, its id, and the units by counter. */
function reservedBy(
  { checks, verdicts, entryId, entryIds }: Decided,
  isLocal: boolean,
): { id: string; reserved: Reserved; units: number[] } | undefined {
  // The fallback holds only what it counts.
  const isHeld = ({ held, plan }: Check): boolean =>
    held !== undefined && (!isLocal || plan.onStoreFailure === "local");
  if (!checks.some((check, i) => isHeld(check) && verdicts[i]!.charged)) return undefined;
  if (checks.some(({ plan }, i) => plan.mode === "enforce" && !verdicts[i]!.allowed)) return undefined;
  const places = [...checks.keys()].filter((i) => isHeld(checks[i]!));
  const counters = heldCounters(
    places.map((i) => checks[i]!),
    (n) => entryIds?.[places[n]!] ?? entryId,
  );
  const reserved: Reserved = { ttlMs: termOf(checks), counters };
  const units = places.map((i) => (verdicts[i]!.charged ? checks[i]!.cost : 0));
  return { id: spellReservationId(reserved, isLocal), reserved, units };
}

/** What the request may cost in excess of what is held, by its own bound, if it may finish; undefined if it declares no bound. */
function overrunsOf(
  checks: readonly Check[],
  held: Readonly<Record<string, number>>,
): Record<string, number> | undefined {
  let found: Record<string, number> | undefined;
  for (const { plan, held: estimated } of checks) {
    const units = Object.hasOwn(held, plan.rule) ? held[plan.rule] : undefined;
    if (estimated?.said === undefined || units === undefined || plan.mode === "candidate") continue;
    if (!plan.estimate!.finishes) continue;
    found ??= {};
    found[plan.rule] = Math.max(0, estimated.said - units);
  }
  return found;
}

/** The shortest of the rules' terms: what is not settled by then counts as spent. */
export function termOf(checks: readonly Check[]): number {
  let shortestMs = Number.POSITIVE_INFINITY;
  for (const { held, plan } of checks) if (held !== undefined) shortestMs = Math.min(shortestMs, plan.estimate!.ttlMs);
  return shortestMs;
}

/** The costs in the attributes. At least one of those that the reservation waits for must be present. */
function amountsIn({ counters }: Reserved, attributes: Attributes): Amounts {
  if (typeof attributes !== "object" || attributes === null || Array.isArray(attributes))
    throw invalid("attributes", "an object", attributes);
  const amounts = new Map<string, number>();
  for (const { cost } of counters) {
    const text = readAttribute(attributes, cost);
    if (text !== undefined) amounts.set(cost, costIn(cost, text));
  }
  if (amounts.size > 0) return amounts;
  const names = [...new Set(counters.map(({ cost }) => cost))].join(", ");
  throw new SluiceError("invalid-request", `attributes: expected the cost that the reservation waits for: ${names}`);
}

function settlementOf(counters: readonly HeldCounter[], settled: SettleReply["counters"]): Settlement {
  const isSettled = settled.some(({ state }) => state === "settled");
  const charged = byRule(
    counters,
    settled.map(({ state, charged: units }) => (state === "unknown" ? undefined : units)),
  );
  const overrun = byRule(
    counters,
    settled.map(({ held, charged: units }) => (units > held ? units - held : undefined)),
  );
  if (isSettled) return { settled: true, charged, overrun };
  const hasExpired = settled.some(({ state }) => state === "expired");
  return { settled: false, charged, overrun, reason: hasExpired ? "expired" : "unknown" };
}

/** A rule is reported, not its candidate. */
function byRule(counters: readonly HeldCounter[], units: readonly (number | undefined)[]): Record<string, number> {
  const speaks = (mode: CheckMode): boolean => mode !== "candidate";
  return Object.fromEntries(
    counters.flatMap(({ rule, mode }, i) => (speaks(mode) && units[i] !== undefined ? [[rule, units[i]]] : [])),
  );
}
