/**
 * Units of one counter that holders have prefetched and not settled yet. Twin: grants.lua. A holder is an instance, or a store between
 * instances and this one.
 *
 * Why the limit holds. Held units count as if they were in the counter, so the counter and all holders together never exceed the limit. A
 * holder uses a unit only before its expiry. A use is charged when the holder settles it, or when its units expire unsettled: never earlier
 * than it happened, so it never leaves a window too early. At any instant, therefore, the uses of the window that ends then are either
 * charged in it or still held. For a bucket: held units do not refill, so the uses of any span are at most the capacity plus what refills
 * in it.
 */
import { windowEnd } from "./fixed-window.js";
import type { State } from "./model.js";
import type { BucketPolicy, Policy } from "./policy.js";
import { POOL_MS, type PoolState } from "./pool.js";
import { newestOf, type RollingWindowState } from "./rolling-window.js";
import { fillTime } from "./token-bucket.js";

/** What a holder reports along with a check, and how many more units it wants to hold. */
export interface Fetch {
  readonly holder: string;
  /** Numbers the holder's fetches for the key. A repeated number gets the same grant; an earlier one is too late and gets none. */
  readonly seq: number;
  /** All units that the holder has used since it started counting. */
  readonly used: number;
  /** Units in hand that it will go on holding. Whatever else it was granted and did not use is free again. */
  readonly held: number;
  readonly want: number;
  /** How many of these waiting requests need: not reduced for the sake of other holders. Default 0. */
  readonly need?: number;
}

export interface Grant {
  readonly units: number;
  /** How many of the units in hand it may go on holding: 0 if they have expired. */
  readonly kept: number;
  /** How long both remain valid, from the decision on. */
  readonly lifeMs: number;
  /** When the next unit is expected, if less than needed was granted; otherwise 0 or absent. */
  readonly retryAfterMs?: number;
}

interface HolderRecord {
  seq: number;
  used: number;
  units: number;
  granted: number;
  kept: number;
  endsAtMs: number;
}

export interface Grants {
  /** Units of all holders. */
  total: number;
  /** The earliest expiry among them, or an earlier instant; 0 if there are none. */
  endsAtMs: number;
  readonly holders: Map<string, HolderRecord>;
  /** After this instant nothing in here matters. */
  goneAtMs: number;
}

/** The longest term that a rule may have: an expiry further ahead was written before the clock stepped back. */
const LONGEST_TERM_MS = 60_000;

export function noGrants(): Grants {
  return { total: 0, endsAtMs: 0, holders: new Map(), goneAtMs: 0 };
}

/** Drops the holders whose units have expired; returns how many units those had, and the latest of their expiries. */
export function takeEnded(grants: Grants, nowMs: number): { units: number; atMs: number } {
  const { endsAtMs } = grants;
  const ended = { units: 0, atMs: 0 };
  if (endsAtMs === 0 || (endsAtMs > nowMs && endsAtMs - nowMs <= LONGEST_TERM_MS)) return ended;
  grants.total = 0;
  grants.endsAtMs = 0;
  for (const [holder, record] of grants.holders) {
    record.endsAtMs = Math.min(record.endsAtMs, nowMs + LONGEST_TERM_MS);
    if (record.endsAtMs <= nowMs) {
      grants.holders.delete(holder);
      ended.units += record.units;
      ended.atMs = Math.max(ended.atMs, record.endsAtMs);
    } else {
      grants.total += record.units;
      noteEnd(grants, record.endsAtMs);
    }
  }
  return ended;
}

function noteEnd(grants: Grants, endsAtMs: number): void {
  grants.endsAtMs = grants.endsAtMs === 0 ? endsAtMs : Math.min(grants.endsAtMs, endsAtMs);
}

/** `repeated`: the same fetch again; `late`: a later one has already been answered. */
export interface Settlement {
  readonly kind: "new" | "repeated" | "late";
  /** Units to charge now. */
  readonly spent: number;
}

/** Removes from the grants what the holder used and what it no longer holds. */
export function settle(grants: Grants, { holder, seq, used, held }: Fetch): Settlement {
  const record = grants.holders.get(holder);
  if (record !== undefined && seq <= record.seq) return { kind: seq === record.seq ? "repeated" : "late", spent: 0 };
  const outstanding = record?.units ?? 0;
  const kept = Math.min(held, outstanding);
  const spent = record === undefined ? 0 : Math.min(Math.max(0, used - record.used), outstanding - kept);
  grants.total += kept - outstanding;
  grants.holders.set(holder, { seq, used, units: kept, granted: 0, kept, endsAtMs: 0 });
  return { kind: "new", spent };
}

interface Granting {
  readonly policy: Policy;
  readonly state: State;
  readonly termMs: number;
  /** Not counting what holders already have. */
  readonly left: number;
  readonly nowMs: number;
}

/** Grants what a settled fetch requests, as far as it is available. */
export function grant(
  grants: Grants,
  { holder, want, need = 0 }: Fetch,
  { policy, state, termMs, left, nowMs }: Granting,
): Grant {
  const record = grants.holders.get(holder)!;
  let endsAtMs = nowMs + termMs;
  // Units expire before their window ends, so that what is charged at their expiry is charged in that window.
  if (policy.stored === "fixed-window") {
    endsAtMs = Math.min(endsAtMs, lastsUntil(policy, Math.max(nowMs, lastOf(policy, state))) - 1);
  } else if (policy.stored === "pool") {
    const { lastMs, unitsEndMs } = state as PoolState;
    endsAtMs = Math.min(endsAtMs, nowMs >= lastMs ? unitsEndMs : 0);
  }
  if (endsAtMs > nowMs && left > 0 && want > 0) {
    // A holder gets at most half of what is left, and less among many: the next one must not come away empty.
    record.granted = Math.min(want, left, Math.max(need, Math.ceil(left / Math.max(2, grants.holders.size / 4))));
    record.units += record.granted;
    grants.total += record.granted;
  }
  record.endsAtMs = endsAtMs;
  noteEnd(grants, endsAtMs);
  grants.goneAtMs = Math.max(grants.goneAtMs, lastsUntil(policy, endsAtMs));
  return grantOf(grants, holder, nowMs);
}

/** The store sets `retryAfterMs`. */
export function grantOf(grants: Grants, holder: string, nowMs: number): Grant {
  const { granted, kept, endsAtMs } = grants.holders.get(holder)!;
  return { units: granted, kept, lifeMs: Math.max(0, endsAtMs - nowMs), retryAfterMs: 0 };
}

export const NO_GRANT: Grant = { units: 0, kept: 0, lifeMs: 0, retryAfterMs: 0 };

/**
 * When expired units are charged: at their expiry, or undefined if that no longer matters. A bucket may have refilled since, and a
 * counter's own clock may be ahead: those are charged now.
 */
export function chargeTime(policy: Policy, state: State, endedAtMs: number, nowMs: number): number | undefined {
  if (policy.stored === "pool") return nowMs;
  if (lastsUntil(policy, endedAtMs) <= nowMs) return undefined;
  return "capacity" in policy || lastOf(policy, state) > nowMs ? nowMs : endedAtMs;
}

/** Until when a charge at an instant matters. */
function lastsUntil(policy: Policy, atMs: number): number {
  if (policy.stored === "fixed-window") return windowEnd(policy, atMs);
  if (policy.stored === "pool") return atMs + POOL_MS;
  return atMs + ("windowMs" in policy ? policy.windowMs : fillTime(policy as BucketPolicy));
}

function lastOf({ stored }: Policy, state: State): number {
  if (stored === "rolling-window" || stored === "rolling-window-packed") return newestOf(state as RollingWindowState);
  return (state as State & { lastMs: number }).lastMs;
}
