/**
 * The contract of a store: where counters live, and where decisions are made atomically. There are two: memory, Redis. `test/conformance`
 * holds every store to the same answers.
 *
 * A store that can answer synchronously does (no promise). One that cannot reach its data rejects with `store-unavailable`, and the limiter
 * then applies each rule's failure policy. A store never applies one itself.
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
  /** If false, only looks. */
  readonly charge: boolean;
  /** Names this request's entries inside counters (a refund or release uses the name again). Made by us, short, unique. */
  readonly entryId: string;
  /** The caller's idempotency key: the same id within a minute returns the same reply and charges nothing. `entryId` is then not empty. */
  readonly id: string | undefined;
  /** A digest of the request, if it has an id: the same id with a different fingerprint rejects with `invalid-request`. */
  readonly fingerprint: string;
  readonly rulesVersion: number;
  /** Other instances may use the same version for other rules: rules that differ are an edit, and not another limiter's. */
  readonly versionIsLocal?: boolean | undefined;
  /** How long units are held for checks with an estimate (`check.held`), if there are any. `entryId` must then be unguessable. */
  readonly holdMs?: number | undefined;
  /** For checks of rules with prefetch, in the order of the checks: what a holder settles and wants. Never with an id. */
  readonly fetches?: readonly (Fetch | undefined)[] | undefined;
  /** The requests that this one stands for, each of which costs 1: one check at their total cost decides them, all or none. */
  readonly together?: readonly StoreRequest[] | undefined;
}

/** What a repeated id, or a refund by id, needs to know about the first request. */
export interface Receipt {
  readonly entryId: string;
  readonly rulesVersion: number;
  readonly checks: readonly Check[];
  /** When each check was decided, if not all at once. */
  readonly timesMs?: readonly number[] | undefined;
}

export interface StoreReply {
  readonly nowMs: number;
  /** One per check, in order. */
  readonly verdicts: readonly Verdict[];
  readonly guarantee: Guarantee;
  /** When each check was decided, if parts of the request were decided separately; otherwise all were decided at `nowMs`. */
  readonly timesMs?: readonly number[];
  /** The names of each check's entries, if different attempts decided parts of the request; otherwise all share one. */
  readonly entryIds?: readonly string[];
  /** Present if the request id was seen before: verdicts and time are those of the earlier request. */
  readonly repeated?: Receipt & { readonly atMs: number };
  /** The server's clock in microseconds: the order of decisions if instances share a server. */
  readonly nowUs?: number;
  /** The server was not asked: it had just refused the same request, and would again. */
  readonly isRemembered?: true;
  /** The checks as they were decided, if a failure policy answered for some of them; and which policy. */
  readonly judged?: { readonly checks: readonly Check[]; readonly degraded: Degraded; readonly cause: unknown };
  /** The answers to the request's fetches, in their order; absent if there were none. */
  readonly grants?: readonly (Grant | undefined)[];
}

/** Filled in by a store with a server clock: when it made a change, in microseconds. For a store that records. */
export interface MadeAt {
  us?: number;
}

/** A charged check, with its time and entry name (`algorithms/charged.ts`). */
export interface Charged {
  readonly check: Check;
  readonly atMs: number;
  /** When it was decided: before `atMs` if its turn was to come then. Absent: at `atMs`. */
  readonly bookedMs?: number;
  readonly entryId: string;
  /**
   * For a bucket: what it lacked right after the charge, plus what had been given back by then; 0 if unknown, and for other
   * algorithms.
   */
  readonly owed: number;
}

export interface RefundRequest {
  readonly charges: readonly Charged[];
  readonly id: string | undefined;
}

/** The places that a lease holds under one concurrency rule, and the term for which they were taken: both are part of their name. */
export interface LeasePlaces {
  readonly key: string;
  readonly entryId: string;
  readonly places: number;
  readonly ttlMs: number;
}

export interface LeaseRequest {
  readonly places: readonly LeasePlaces[];
}

/** `key`: a block's key, from `keys.ts`. */
export interface BlockedKey {
  readonly key: string;
  readonly leftMs: number;
}

/**
 * The caller's input behind some of a request's checks. `asked` parameters are for a store that records; others need only checks and keys.
 */
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

/** A utilisation report as exchanged through the store, with its remaining time to live. */
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
  /** Whether this instance is the leader: only a leader's limits count. */
  readonly leads: boolean;
  /** In the order of the request's; undefined where there is none. */
  readonly limits: readonly (number | undefined)[];
}

export interface Store {
  decide(request: StoreRequest): MaybePromise<StoreReply>;
  /** The reply that was given for a request id, while it is remembered: not after its refund. */
  recall(id: string): MaybePromise<StoreReply | undefined>;
  /** True if given back; false if that happened before, or the request id is no longer known or stands for another charge. */
  refund(request: RefundRequest, madeAt?: MadeAt): MaybePromise<boolean>;
  /** Gives each check's cost back to its counter, whichever request charged it; false if no counter had anything to give back. */
  giveBack(checks: readonly Check[], asked?: readonly AskedPart[], madeAt?: MadeAt): MaybePromise<boolean>;
  /** True if a place was still held. */
  release(lease: LeaseRequest, madeAt?: MadeAt): MaybePromise<boolean>;
  /** Milliseconds until the lease ends now; 0 if it was lost. */
  renew(lease: LeaseRequest, madeAt?: MadeAt): MaybePromise<number>;
  /**
   * Charges or gives back the difference between what was held and the real costs, once. A cost that is not given stands as held. `name`,
   * in letters: a settlement repeated under the same name learns whether it was the one that counted.
   */
  settle(reservation: Reserved, amounts: Amounts, name?: string): MaybePromise<SettleReply>;
  /** Holds more, up to these total amounts: in every counter, or in none. Renews the reservation's term. */
  extend(reservation: Reserved, amounts: Amounts): MaybePromise<ExtendReply>;
  /** The current state of a reservation. */
  holdState(reservation: Reserved): MaybePromise<ReservationState>;
  /** Adds settled costs to the learned costs of a class of keys, and returns the totals: bucket by bucket (`cost-histogram.ts`). */
  learn(name: string, costs: CostWeights): MaybePromise<CostWeights>;
  /** Blocks a key for this long from now, whatever its counter holds. `key`: a block's key, from `keys.ts`. */
  block(key: string, lengthMs: number, asked?: AskedKey, madeAt?: MadeAt): MaybePromise<void>;
  /** The stored numbers of each check's counter, for humans. */
  inspect(checks: readonly Check[]): MaybePromise<readonly Readonly<Record<string, number>>[]>;
  /** Forgets counters. Keys are literal, never patterns. */
  reset(keys: readonly string[], asked?: AskedKey, madeAt?: MadeAt): MaybePromise<void>;
  /** Called before a region's fetch from the global store is sent: the state of the pool under this key. */
  askForPool(key: string, ask: PoolAsk): MaybePromise<PoolAsked>;
  /** Called when the fetch was answered, or failed. */
  fillPool(key: string, fill: PoolFill): MaybePromise<PoolFilled>;
  /** Whether every request gets an entry id, even if no counter keeps it: a store that records identifies requests by it. */
  readonly namesRequests?: boolean;
  /** Whether the store is remote enough for prefetching to pay off. Every store answers fetches. */
  readonly isRemote?: boolean;
  /**
   * Joins the heartbeat, if several instances can share the store. Counts the instances that have joined; given a region's name, the
   * regions. `onBeat`: called with each answer.
   */
  countInstances?(region?: string, onBeat?: OnBeat): InstanceCount;
  /**
   * Writes a utilisation report if fewer than `most` are held; without one, lists the current reports. Absent if the store is not shared.
   */
  shareReports?(written?: { report: SharedReport; most: number }): Promise<SharedReport[]>;
  /** Writes the limits that this instance would set, if it is the leader, and returns those in force. Absent if the store is not shared. */
  shareLimits?(request: SharedLimitsRequest): Promise<SharedLimits>;
  /** Whether the store answers now. Never rejects, and takes no longer than a second, or its deadline if that is longer. */
  ready(): MaybePromise<boolean>;
  /** Why `ready` last returned false. */
  readonly whyNotReady?: unknown;
  /** Absent if there are no calls: the store answers synchronously. */
  stats?(): StoreStats;
  /** Absent if counters do not live in this process. */
  memory?(): MemoryUse;
  /** Blocked keys of one rule or of all, up to a thousand. Absent if counters do not live in this process. */
  blocks?(rule?: string): readonly BlockedKey[];
  close(): MaybePromise<void>;
}

/** How long a request id is remembered. */
export const REMEMBER_MS = 60_000;

/** An id belongs to the request and the rules that it was sent with: otherwise a client that chooses its ids would pass uncounted. */
export function otherRequest(): SluiceError {
  return new SluiceError(
    "invalid-request",
    "id: was sent for another request within the last minute; expected the same attributes, cost and rules, or a new id",
  );
}
