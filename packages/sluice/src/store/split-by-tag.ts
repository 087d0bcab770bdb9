/**
 * Splits a request whose counters live in different slots of a cluster, and puts the replies together again.
 * Each part is decided by one script, all or nothing in itself; if one part refuses, what the others charged is given back.
 * Pure: what to send and what to give back is said here, sent by `redis-store.ts`.
 */
import { type Verdict, verdict } from "../algorithms/model.js";
import { capacityOf } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import { hashTag } from "../keys.js";
import type { RefundRequest, StoreReply, StoreRequest } from "./store.js";

export interface Part {
  readonly tag: string;
  readonly request: StoreRequest;
  /** Where its checks stand in the whole request. */
  readonly places: readonly number[];
}

/** By hash tag: checks whose tags are equal share a slot for certain. */
export function splitByTag(request: StoreRequest): Part[] {
  const { checks } = request;
  const groups = groupByTag([...checks.keys()], (i) => checks[i]!.key);
  return groups.map((places) => ({
    tag: hashTag(checks[places[0]!]!.key),
    places,
    request: groups.length === 1 ? request : { ...request, checks: places.map((i) => relocated(checks[i]!, places)) },
  }));
}

/** Key by key, where not even the keys of one tag can be decided together. A candidate is then judged by itself, as a shadow is. */
export function splitByKey(request: StoreRequest): Part[] {
  const keys = new Set(request.checks.map(({ key }) => key));
  return [...keys].map((key) => {
    const places = [...request.checks.keys()].filter((i) => request.checks[i]!.key === key);
    const checks = places.map((i) => relocated(request.checks[i]!, places));
    return { tag: hashTag(key), places, request: { ...request, checks, id: undefined } };
  });
}

/** A candidate has its live check's key, and so its tag: both are in one part. */
function relocated(check: Check, places: readonly number[]): Check {
  return check.live < 0 ? check : { ...check, live: places.indexOf(check.live) };
}

/** The parts' replies as one, and what has to be given back because another part refused. */
export function joinReplies(
  parts: readonly Part[],
  replies: readonly StoreReply[],
): { reply: StoreReply; refunds: RefundRequest[] } {
  const refusing = parts.map((part, p) =>
    part.request.checks.some((check, i) => refuses(check, replies[p]!.verdicts[i]!)),
  );
  const verdicts: Verdict[] = [];
  const timesMs: number[] = [];
  const checks: Check[] = [];
  const refunds: RefundRequest[] = [];
  parts.forEach((part, p) => {
    const found = replies[p]!;
    const judged = found.repeated?.checks ?? part.request.checks;
    const elsewhere = refusing.some((refused, other) => refused && other !== p);
    // A request id seen before was settled then; its charges are not given back a second time.
    const charged = judged.filter(
      ({ charge }, i) => elsewhere && !charge && found.repeated === undefined && found.verdicts[i]!.charged,
    );
    if (charged.length > 0) {
      const { entryId, id } = part.request;
      refunds.push({ entryId, charges: charged.map((check) => ({ check, atMs: found.nowMs })), id });
    }
    judged.forEach((check, i) => {
      const at = found.repeated === undefined ? part.places[i]! : verdicts.length;
      verdicts[at] = elsewhere ? givenBack(check, found.verdicts[i]!) : found.verdicts[i]!;
      timesMs[at] = found.nowMs;
      checks[at] = check;
    });
  });
  const [first] = replies;
  const reply: StoreReply = { nowMs: first!.nowMs, verdicts, timesMs, guarantee: "compensated" };
  return {
    reply: first!.repeated === undefined ? reply : { ...reply, repeated: { ...first!.repeated, checks } },
    refunds,
  };
}

function refuses(check: Check, found: Verdict): boolean {
  return check.plan.mode === "enforce" && !found.allowed;
}

/** What the verdict is once its charge is given back. */
function givenBack(check: Check, found: Verdict): Verdict {
  if (!found.charged || check.charge) return found;
  const remaining = Math.min(capacityOf(check.plan.policy), found.remaining + check.cost);
  return verdict(found.allowed, remaining, found.retryAfterMs, found.resetAfterMs, found.reason);
}

/** What has a key, grouped by the key's tag: each group is within one script's reach. */
export function groupByTag<T>(entries: readonly T[], keyOf: (entry: T) => string): T[][] {
  const byTag = new Map<string, T[]>();
  for (const entry of entries) {
    const tag = hashTag(keyOf(entry));
    const group = byTag.get(tag);
    if (group === undefined) byTag.set(tag, [entry]);
    else group.push(entry);
  }
  return [...byTag.values()];
}
