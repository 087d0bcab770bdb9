/**
 * Units that holders fetched ahead of one counter and have not settled yet. Twin: grants.lua. A holder is an instance, or a store that
 * stands between instances and this one.
 *
 * Why the limit holds. Units that are held count as if they were in the counter, so the counter and all holders together never have
 * more than the limit. A holder uses a unit before its end only. A use is charged when the holder settles it, or at the end of its
 * units where it never does: never earlier than it happened, so it leaves a window no earlier than it must. At any instant, therefore,
 * the uses of the window that ends then are charged in it or still held. For a bucket: what is held does not refill, so that the uses
 * of any span are at most the capacity and what refills in it.
 */
import { windowEnd } from "./fixed-window.js";
import type { State } from "./model.js";
import type { BucketPolicy, Policy } from "./policy.js";
import { POOL_MS, type PoolState } from "./pool.js";
import { newestOf, type RollingWindowState } from "./rolling-window.js";
import { fillTime } from "./token-bucket.js";

/** What a holder tells, beside a check, and how many units it wants to hold more. */
export interface Fetch {
  readonly holder: string;
  /** Counts the holder's fetches for the key. The same one again gets the same grant; an earlier one comes too late and gets none. */
  readonly seq: number;
  /** All units that the holder has used since it began to count. */
  readonly used: number;
  /** Units that it has in hand and goes on to hold; what it was granted beside these and the used ones is free again. */
  readonly held: number;
  readonly want: number;
  /** Of these, how many requests wait for: not cut down for the sake of other holders. Default 0. */
  readonly need?: number;
}

export interface Grant {
  readonly units: number;
  /** How many of the units in hand it may go on to hold: 0 if they have ended. */
  readonly kept: number;
  /** How long both live, from the decision on. */
  readonly lifeMs: number;
  /** When the next unit is expected, where less than needed was granted; else 0 or absent. */
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
  /** The earliest end among them, or an earlier instant; 0 if there are none. */
  endsAtMs: number;
  readonly holders: Map<string, HolderRecord>;
  /** After this instant nothing here matters. */
  goneAtMs: number;
}

/** The longest term that a rule may have: an end that lies further ahead was written before the clock stepped back. */
const LONGEST_TERM_MS = 60_000;

export function noGrants(): Grants {
  return { total: 0, endsAtMs: 0, holders: new Map(), goneAtMs: 0 };
}

/** Drops the holders whose units have ended: how many units those had, and the latest of their ends. */
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

/** `repeated`: the same fetch again; `late`: a later one was answered before. */
export interface Settlement {
  readonly kind: "new" | "repeated" | "late";
  /** Units to charge now. */
  readonly spent: number;
}

/** Takes what the holder used and no longer holds out of the grants. */
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
  /** Beside what all holders have. */
  readonly left: number;
  readonly nowMs: number;
}

/** Grants what a settled fetch asks for, as far as it is left. */
export function grant(
  grants: Grants,
  { holder, want, need = 0 }: Fetch,
  { policy, state, termMs, left, nowMs }: Granting,
): Grant {
  const record = grants.holders.get(holder)!;
  let endsAtMs = nowMs + termMs;
  // Units end before their window does: what is charged at their end is charged in it.
  if (policy.stored === "fixed-window") {
    endsAtMs = Math.min(endsAtMs, lastsUntil(policy, Math.max(nowMs, lastOf(policy, state))) - 1);
  } else if (policy.stored === "pool") {
    const { lastMs, unitsEndMs } = state as PoolState;
    endsAtMs = Math.min(endsAtMs, nowMs >= lastMs ? unitsEndMs : 0);
  }
  if (endsAtMs > nowMs && left > 0 && want > 0) {
    // A holder gets half of what is left at most, and less among many: the next one must not find nothing.
    record.granted = Math.min(want, left, Math.max(need, Math.ceil(left / Math.max(2, grants.holders.size / 4))));
    record.units += record.granted;
    grants.total += record.granted;
  }
  record.endsAtMs = endsAtMs;
  noteEnd(grants, endsAtMs);
  grants.goneAtMs = Math.max(grants.goneAtMs, lastsUntil(policy, endsAtMs));
  return grantOf(grants, holder, nowMs);
}

/** `retryAfterMs` is for the store to tell. */
export function grantOf(grants: Grants, holder: string, nowMs: number): Grant {
  const { granted, kept, endsAtMs } = grants.holders.get(holder)!;
  return { units: granted, kept, lifeMs: Math.max(0, endsAtMs - nowMs), retryAfterMs: 0 };
}

export const NO_GRANT: Grant = { units: 0, kept: 0, lifeMs: 0, retryAfterMs: 0 };

/**
 * When ended units are charged: at their end; undefined if that no longer matters. A bucket may have filled since, and a counter's own
 * clock may be ahead: those are charged now.
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
