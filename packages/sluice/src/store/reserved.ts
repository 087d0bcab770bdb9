/**
 * A reservation as stores see it: the counters in which it holds units. Its id lists them, so that any instance can settle it in one call;
 * the store keeps a digest of the list with what is held, and rejects an id that does not match it.
 */
import { createHash } from "node:crypto";
import type { Verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import type { CheckMode } from "../decision.js";

export interface HeldCounter {
  readonly entryId: string;
  readonly rule: string;
  readonly mode: CheckMode;
  /** The counter's key, from `keys.ts`, without the prefix. */
  readonly key: string;
  readonly policy: Policy;
  /**
   * The rule's numbers now, if it was edited since: those of what is charged from now on. A charge by outdated numbers would cut a longer
   * window, or refill a bucket at the old rate. Neither in the id nor in its digest.
   */
  readonly policyNow?: Policy | undefined;
  /** The attribute that carries the real cost. */
  readonly cost: string;
  readonly finishes: boolean;
  readonly keyClass: string;
}

/** By which numbers a counter is charged from now on. */
export function chargingPolicy({ policy, policyNow }: Pick<HeldCounter, "policy" | "policyNow">): Policy {
  return policyNow ?? policy;
}

export interface Reserved {
  readonly ttlMs: number;
  readonly counters: readonly HeldCounter[];
}

/** The counters in which a request's checks hold units. `entryIdOf`: the name of a check's entries. */
export function heldCounters(checks: readonly Check[], entryIdOf: (i: number) => string): HeldCounter[] {
  const counters: HeldCounter[] = [];
  for (const [i, { held, plan, key }] of checks.entries()) {
    if (held === undefined) continue;
    const { rule, mode, policy } = plan;
    const { cost, finishes, keyClass } = plan.estimate!;
    counters.push({ entryId: entryIdOf(i), rule, mode, key, policy, cost, finishes, keyClass });
  }
  return counters;
}

/** Costs by attribute. A missing cost is unknown. */
export type Amounts = ReadonlyMap<string, number>;

/** `unknown`: no such reservation, or it was forgotten. `expired`: not settled in time; what was held counts as spent. */
export type ReservationState = "open" | "settled" | "expired" | "unknown";

/** One counter after a settlement. */
export interface SettledCounter {
  readonly state: ReservationState;
  readonly held: number;
  readonly charged: number;
}

export interface SettleReply {
  /** In the order of the counters. */
  readonly counters: readonly SettledCounter[];
  /** True if this call did the settling, not an earlier one. */
  readonly isNew: boolean;
  /** True if this settlement is the one that counted: by this call, or by an earlier one with the same name. */
  readonly isOwn: boolean;
}

export interface ExtendReply {
  readonly nowMs: number;
  readonly state: ReservationState;
  /** One per counter; empty unless the reservation is open. */
  readonly verdicts: readonly Verdict[];
  /** Units held now, one entry per counter. */
  readonly held: readonly number[];
}

/** How long a settled or expired reservation is remembered: a repeated settle gets the same answer. */
export const REMEMBER_HOLD_MS = 60_000;

const DIGEST_LENGTH = 22;

/** 128 bits over everything that a reservation's id contains about counters under one tag. */
export function holdDigest({ ttlMs, counters }: Reserved): string {
  const said = counters.map(({ rule, mode, key, policy, cost, finishes, keyClass }) => [
    rule,
    mode,
    key,
    spellPolicy(policy),
    cost,
    finishes,
    keyClass,
  ]);
  return createHash("sha256")
    .update(JSON.stringify([ttlMs, said]))
    .digest("base64url")
    .slice(0, DIGEST_LENGTH);
}

/** Sorted, because the same policy read from JSON must give the same digest. */
function spellPolicy(policy: Policy): unknown[] {
  return Object.entries(policy)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, typeof value === "object" ? [value.unit, value.timezone] : value]);
}
