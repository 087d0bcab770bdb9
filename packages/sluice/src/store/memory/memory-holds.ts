/**
 * Holds in the memory store: what settle.lua does in Redis. Bounded in bytes: the reservations nearest to their end are evicted, and what
 * they held counts as spent.
 */
import {
  extensionName,
  type Hold,
  heldOf,
  mostToHold,
  overrunName,
  rowsToRepay,
  withRow,
} from "../../algorithms/hold.js";
import { type Charge, type Refund, type State, type Verdict, verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import { type BucketState, owedBy } from "../../algorithms/token-bucket.js";
import { ExpiringMap } from "../expiring-map.js";
import {
  type Amounts,
  chargingPolicy,
  type ExtendReply,
  type HeldCounter,
  heldCounters,
  holdDigest,
  REMEMBER_HOLD_MS,
  type ReservationState,
  type Reserved,
  type SettleReply,
} from "../reserved.js";
import type { StoreRequest } from "../store.js";
import { holdBytes } from "./memory-bytes.js";

/** The counters of the store. */
interface Counters {
  /** The counter's state; undefined if there is none, or it has expired. */
  state(key: string, nowMs: number): State | undefined;
  charge(counter: HeldCounter, charge: Charge, verdict: Verdict, state: State): void;
}

/** A hold in the map, which forgets it some time after its end. */
interface Kept {
  readonly endsAtMs: number;
  readonly bytes: number;
  readonly hold: Hold;
}

export class MemoryHolds {
  readonly #counters: Counters;
  readonly #maxBytes: number;
  readonly #byName = new ExpiringMap<Kept>();
  /** Reservations evicted before their end. */
  evicted = 0;

  constructor(counters: Counters, maxBytes: number) {
    this.#counters = counters;
    this.#maxBytes = maxBytes;
  }

  get count(): number {
    return this.#byName.count;
  }

  get bytes(): number {
    return this.#byName.bytes;
  }

  sweep(looks: number, nowMs: number): void {
    this.#byName.sweep(looks, nowMs);
  }

  /** Call when a request has passed. `atMs`: when it was charged, with `nowMs` as its integer part. */
  open(request: StoreRequest, verdicts: readonly Verdict[], { atMs, nowMs }: { atMs: number; nowMs: number }): void {
    const { checks, entryId } = request;
    const ttlMs = request.holdMs!;
    const counters = heldCounters(checks, () => entryId);
    const units = checks.flatMap(({ held, cost }, i) => (held === undefined ? [] : [verdicts[i]!.charged ? cost : 0]));
    const hold = {
      digest: holdDigest({ ttlMs, counters }),
      endsAtMs: nowMs + ttlMs,
      rows: [{ entryId, atMs, units, owed: counters.map((counter) => this.#owed(counter, nowMs)) }],
      charged: undefined,
    };
    this.#keep(entryId, hold, holdBytes(entryId, counters.length), nowMs);
  }

  /** `name`: the settlement's name; "" for none. */
  settle(reservation: Reserved, amounts: Amounts, { name: by, nowMs }: { name: string; nowMs: number }): SettleReply {
    const { counters } = reservation;
    const name = counters[0]!.entryId;
    const { hold, state } = this.#find(reservation, nowMs);
    if (hold === undefined || state !== "open") {
      const isKnown = hold !== undefined && state !== "unknown";
      return {
        isNew: false,
        isOwn: state === "settled" && by !== "" && hold!.by === by,
        counters: counters.map((_, i) => {
          const held = isKnown ? heldOf(hold, i) : 0;
          return { state, held, charged: state === "settled" ? hold!.charged![i]! : held };
        }),
      };
    }
    const held = counters.map((_, i) => heldOf(hold, i));
    const charged = counters.map(({ cost }, i) => amounts.get(cost) ?? held[i]!);
    counters.forEach((counter, i) => {
      if (charged[i]! > held[i]!) this.#charge(counter, charged[i]! - held[i]!, overrunName(hold.rows), nowMs);
      else this.#giveBack(counter, hold, i, { units: held[i]! - charged[i]!, nowMs });
    });
    this.#keep(name, { ...hold, charged, by }, holdBytes(name, counters.length), nowMs);
    const settled = counters.map((_, i) => ({ state: "settled" as const, held: held[i]!, charged: charged[i]! }));
    return { isNew: true, isOwn: true, counters: settled };
  }

  /** `atMs`: as for `open`. */
  extend(reservation: Reserved, amounts: Amounts, { atMs, nowMs }: { atMs: number; nowMs: number }): ExtendReply {
    const { counters, ttlMs } = reservation;
    const name = counters[0]!.entryId;
    const { hold, state } = this.#find(reservation, nowMs);
    if (hold === undefined || state !== "open") return { nowMs, state, verdicts: [], held: [] };
    const wanted = counters.map((counter, i) => {
      return Math.max(0, mostToHold(amounts.get(counter.cost) ?? 0, counter) - heldOf(hold, i));
    });
    const verdicts = counters.map((counter, i) => {
      const { key, finishes } = counter;
      const policy = chargingPolicy(counter);
      const model = models[policy.stored];
      const found = model.look(this.#counters.state(key, nowMs) ?? model.fresh(), policy, wanted[i]!, nowMs);
      return finishes && !found.allowed ? verdict(true, found.remaining, 0, found.resetAfterMs, undefined) : found;
    });
    const isRefused = counters.some(({ mode }, i) => mode === "enforce" && !verdicts[i]!.allowed);
    if (isRefused) return { nowMs, state, verdicts, held: counters.map((_, i) => heldOf(hold, i)) };
    const entryId = extensionName(hold.rows);
    const units = counters.map((counter, i) => {
      if (wanted[i] === 0 || !verdicts[i]!.allowed) return 0;
      this.#charge(counter, wanted[i]!, entryId, nowMs, verdicts[i]!);
      // `given` is for refunds, and held units go back through their hold.
      delete verdicts[i]!.given;
      return wanted[i]!;
    });
    const owed = counters.map((counter) => this.#owed(counter, nowMs));
    const rows = units.some((n) => n > 0) ? withRow(hold.rows, { atMs, units, owed }) : hold.rows;
    const extended = { ...hold, rows, endsAtMs: nowMs + ttlMs };
    this.#keep(name, extended, holdBytes(name, counters.length * rows.length), nowMs);
    return { nowMs, state, verdicts, held: counters.map((_, i) => heldOf(extended, i)) };
  }

  stateOf(reservation: Reserved, nowMs: number): ReservationState {
    return this.#find(reservation, nowMs).state;
  }

  /** The hold behind a reservation, and its state. An id that differs in anything from what was held matches nothing. */
  #find(reservation: Reserved, nowMs: number): { hold: Hold | undefined; state: ReservationState } {
    const kept = this.#byName.get(reservation.counters[0]!.entryId);
    if (kept === undefined || kept.endsAtMs <= nowMs) return { hold: undefined, state: "unknown" };
    const { hold } = kept;
    if (hold.digest !== holdDigest(reservation)) return { hold: undefined, state: "unknown" };
    if (hold.charged !== undefined) return { hold, state: "settled" };
    return { hold, state: nowMs >= hold.endsAtMs ? "expired" : "open" };
  }

  #keep(name: string, hold: Hold, bytes: number, nowMs: number): void {
    while (this.#byName.bytes + bytes > this.#maxBytes && this.#byName.count > 0) {
      if (this.#byName.evict(nowMs)) this.evicted++;
    }
    this.#byName.set(name, { endsAtMs: hold.endsAtMs + REMEMBER_HOLD_MS, bytes, hold }, nowMs);
  }

  #charge(counter: HeldCounter, cost: number, requestId: string, nowMs: number, found?: Verdict): void {
    const { key, policy } = counter;
    const state = this.#counters.state(key, nowMs) ?? models[policy.stored].fresh();
    const charge: Charge = { cost, nowMs, requestId };
    this.#counters.charge(counter, charge, found ?? verdict(true, 0, 0, 0, undefined), state);
  }

  #giveBack(
    { key, policy }: HeldCounter,
    hold: Hold,
    counter: number,
    { units, nowMs }: { units: number; nowMs: number },
  ): void {
    const state = this.#counters.state(key, nowMs);
    if (state === undefined) return;
    for (const { row, units: cost } of rowsToRepay(hold, counter, units)) {
      const whole = { owed: row.owed[counter]!, wholeCost: row.units[counter]! };
      const refund: Refund = { cost, nowMs, chargedAtMs: row.atMs, requestId: row.entryId, ...whole };
      models[policy.stored].refund(state, policy, refund);
    }
  }

  /** What a bucket lacks after a charge. */
  #owed(counter: HeldCounter, nowMs: number): number {
    const { key } = counter;
    const policy = chargingPolicy(counter);
    if (!("amount" in policy)) return 0;
    const state = this.#counters.state(key, nowMs);
    return state === undefined ? 0 : owedBy(state as BucketState, policy, nowMs);
  }
}
