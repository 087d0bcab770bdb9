/**
 * The contract of a store: where counters live and where a decision is made atomically. Two exist: memory, Redis.
 * `test/conformance` holds every store to the same answers.
 *
 * A store that can answer at once does (no promise); one that cannot reach its data rejects with `store-unavailable`, and
 * the limiter then applies each rule's failure policy. A store never applies one itself.
 */

import type { CostWeights } from "../algorithms/cost-histogram.js";
import type { Fetch, Grant } from "../algorithms/grants.js";
import type { Verdict } from "../algorithms/model.js";
import type { PoolAsk, PoolAsked, PoolFill, PoolFilled } from "../algorithms/pool.js";
import type { Check } from "../check.js";
import type { Degraded, Guarantee } from "../decision.js";
import { SluiceError } from "../errors.js";
import type { Attributes, Rule } from "../rules/rule.js";
import type { InstanceCount, OnBeat } from "./instance-count.js";
import type { MemoryUse } from "./memory/memory-limit.js";
import type { Amounts, ExtendReply, ReservationState, Reserved, SettleReply } from "./reserved.js";
import type { StoreStats } from "./store-stats.js";

export type MaybePromise<T> = T | Promise<T>;

export interface StoreRequest {
  readonly checks: readonly Check[];
  /** False only looks. */
  readonly charge: boolean;
  /** Names this request's entries inside counters (a refund or release names it again). Ours, short, unique. */
  readonly entryId: string;
  /** The caller's own id: the same id again within a minute returns the same reply and charges nothing. Then `entryId` is not empty. */
  readonly id: string | undefined;
  /** A digest of the request, where it has an id: the same id with another one rejects with `invalid-request`. */
  readonly fingerprint: string;
  readonly rulesVersion: number;
  /** How long units are held for checks with an estimate, if any has one: `check.held`. Then `entryId` is not to be guessed. */
  readonly holdMs?: number | undefined;
  /** Beside checks of rules with prefetch, in the order of the checks: what a holder settles and wants. Never with an id. */
  readonly fetches?: readonly (Fetch | undefined)[] | undefined;
  /** The requests that this one stands for, each of which costs 1: one check at their cost decides them, all or none. */
  readonly together?: readonly StoreRequest[] | undefined;
}

/** The facts about the first request that a repeated id, or a refund by id, needs. */
export interface Receipt {
  readonly entryId: string;
  readonly rulesVersion: number;
  readonly checks: readonly Check[];
  /** When each check was decided, if not all were at once. */
  readonly timesMs?: readonly number[] | undefined;
}

export interface StoreReply {
  readonly nowMs: number;
  /** One a check, in order. */
  readonly verdicts: readonly Verdict[];
  readonly guarantee: Guarantee;
  /** When each check was decided, where parts of the request were decided apart; else all were at `nowMs`. */
  readonly timesMs?: readonly number[];
  /** The names of each check's entries, where parts of the request were decided by different attempts; else all have one. */
  readonly entryIds?: readonly string[];
  /** Present when the request id was seen before: the verdicts and the time are those of this earlier request. */
  readonly repeated?: Receipt & { readonly atMs: number };
  /** The server's clock in microseconds: the order of decisions, where instances share a server. */
  readonly nowUs?: number;
  /** The server was not asked: it had refused the same moments before, and would again. */
  readonly isRemembered?: true;
  /** The checks as they were judged, where a failure policy answered for some of them; and which. */
  readonly judged?: { readonly checks: readonly Check[]; readonly degraded: Degraded; readonly cause: unknown };
  /** The answers to the request's fetches, in their order; absent where none was looked at. */
  readonly grants?: readonly (Grant | undefined)[];
}

/** Filled by a store whose server tells the time: when it made a change, in microseconds. For a store that records. */
export interface MadeAt {
  us?: number;
}

/** A check that was charged, when, and under which name (`algorithms/charged.ts`). */
export interface Charged {
  readonly check: Check;
  readonly atMs: number;
  readonly entryId: string;
  /** Of a bucket: what it lacked right after the charge, and had been given back by then; 0 if unknown, and for others. */
  readonly owed: number;
}

export interface RefundRequest {
  readonly charges: readonly Charged[];
  readonly id: string | undefined;
}

/** The places that a lease holds under one concurrency rule, and the term with which they were taken: both are part of their name. */
export interface LeasePlaces {
  readonly key: string;
  readonly entryId: string;
  readonly places: number;
  readonly ttlMs: number;
}

export interface LeaseRequest {
  readonly places: readonly LeasePlaces[];
}

/** `key` is a block's, from `keys.ts`. */
export interface BlockedKey {
  readonly key: string;
  readonly leftMs: number;
}

/** The caller's words behind some of a request's checks: `asked` is for a store that records; others need only checks and keys. */
export interface AskedPart {
  readonly attributes: Attributes;
  readonly cost?: number | undefined;
  readonly charge?: boolean | undefined;
  readonly book?: { readonly rules: readonly Rule[] } | undefined;
}

/** Whose counter is reset or blocked. */
export interface AskedKey {
  readonly rule: string;
  readonly attributes: Attributes;
}

/** A report of utilisation on its way through the store, with the time that it still holds. */
export interface SharedReport {
  readonly value: number;
  readonly source: string;
  readonly key: string;
  readonly ttlMs: number;
}

/** The limits of adaptive rules, as one instance would set them. */
export interface SharedLimitsRequest {
  readonly instance: string;
  /** How long a leader leads from now on. */
  readonly leadsMs: number;
  readonly limits: readonly { readonly rule: string; readonly limit: number }[];
}

export interface SharedLimits {
  /** Whether this instance leads: only a leader's limits count. */
  readonly leads: boolean;
  /** In the order of the request's; undefined where there is none. */
  readonly limits: readonly (number | undefined)[];
}

export interface Store {
  decide(request: StoreRequest): MaybePromise<StoreReply>;
  /** The reply that a request id was given, while it is remembered: not after its refund. */
  recall(id: string): MaybePromise<StoreReply | undefined>;
  /** True if given back; false if that happened before, or the request id is no longer known or stands for another charge. */
  refund(request: RefundRequest, madeAt?: MadeAt): MaybePromise<boolean>;
  /** Gives each check's cost back to its counter, no matter which request charged it; false if no counter had anything to give back. */
  giveBack(checks: readonly Check[], asked?: readonly AskedPart[], madeAt?: MadeAt): MaybePromise<boolean>;
  /** True if a place was still held. */
  release(lease: LeaseRequest, madeAt?: MadeAt): MaybePromise<boolean>;
  /** Ms until the lease now ends; 0 if it was lost. */
  renew(lease: LeaseRequest, madeAt?: MadeAt): MaybePromise<number>;
  /** Charges or gives back the difference between what was held and the real costs, once. A cost that is not told stands as held. */
  settle(reservation: Reserved, amounts: Amounts): MaybePromise<SettleReply>;
  /** Holds more, up to these amounts in all: of every counter, or of none. Begins the reservation's term anew. */
  extend(reservation: Reserved, amounts: Amounts): MaybePromise<ExtendReply>;
  /** How a reservation stands now. */
  holdState(reservation: Reserved): MaybePromise<ReservationState>;
  /** Adds costs that were settled to what a class of keys has cost before, and returns that: bucket by bucket (`cost-histogram.ts`). */
  learn(name: string, costs: CostWeights): MaybePromise<CostWeights>;
  /** Blocks a key for so long from now, whatever its counter says; `key` is a block's, from `keys.ts`. */
  block(key: string, lengthMs: number, asked?: AskedKey, madeAt?: MadeAt): MaybePromise<void>;
  /** The stored numbers of each check's counter, for people to read. */
  inspect(checks: readonly Check[]): MaybePromise<readonly Readonly<Record<string, number>>[]>;
  /** Forgets counters. Keys are literal, never patterns. */
  reset(keys: readonly string[], asked?: AskedKey, madeAt?: MadeAt): MaybePromise<void>;
  /** Before a region's fetch from the global store is sent: what the pool under this key tells. */
  askForPool(key: string, ask: PoolAsk): MaybePromise<PoolAsked>;
  /** When it was answered, or was not. */
  fillPool(key: string, fill: PoolFill): MaybePromise<PoolFilled>;
  /** Whether every request gets an entry id, also where no counter keeps it: a store that records names requests by it. */
  readonly namesRequests?: boolean;
  /** Whether the store is so far away that units are worth fetching ahead. Every store answers fetches. */
  readonly isRemote?: boolean;
  /**
   * Joins the heartbeat, where several instances can share the store. Counts the instances that have joined; with the name of a region,
   * the regions that have. `onBeat` hears of each answer.
   */
  countInstances?(region?: string, onBeat?: OnBeat): InstanceCount;
  /** Writes a report of utilisation where fewer than `most` are held; without one, lists those that hold. Absent where nobody shares the store. */
  shareReports?(written?: { report: SharedReport; most: number }): Promise<SharedReport[]>;
  /** Writes the limits that this instance would set, if it leads, and returns those in force; absent where nobody shares the store. */
  shareLimits?(request: SharedLimitsRequest): Promise<SharedLimits>;
  /** Whether the store answers now; never rejects, and takes no longer than a second, or its deadline if that is longer. */
  ready(): MaybePromise<boolean>;
  /** The last failure of `ready`, if it answered no. */
  readonly whyNotReady?: unknown;
  /** Absent where there are no calls: a store that answers at once. */
  stats?(): StoreStats;
  /** Absent where counters do not live in this process. */
  memory?(): MemoryUse;
  /** Blocked keys, of one rule or of all, up to a thousand. Absent where counters do not live in this process. */
  blocks?(rule?: string): readonly BlockedKey[];
  close(): MaybePromise<void>;
}

/** How long a request id is remembered. */
export const REMEMBER_MS = 60_000;

/** An id belongs to the request that it was sent with: otherwise a client that chooses its ids would pass uncounted. */
export function otherRequest(): SluiceError {
  return new SluiceError(
    "invalid-request",
    "id: was sent for another request within the last minute; expected the same attributes and cost, or a new id",
  );
}
