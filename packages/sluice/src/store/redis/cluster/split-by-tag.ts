/**
 * Splits a request whose counters live in different slots of a cluster, and joins the replies. Each part is decided by one script, all or
 * nothing; if one part refuses, the charges of the others are given back. Pure: it computes what to send and what to give back;
 * `decide-in-parts.ts` sends it.
 */
import { chargedBy } from "../../../algorithms/charged.js";
import type { Grant } from "../../../algorithms/grants.js";
import { type Verdict, verdict } from "../../../algorithms/model.js";
import { capacityOf } from "../../../algorithms/policy.js";
import type { Check } from "../../../check.js";
import { hashTag } from "../../../keys.js";
import type { StoreReply, StoreRequest } from "../../store.js";
import type { Undo } from "./compensation.js";

export interface Part {
  readonly tag: string;
  readonly request: StoreRequest;
  /** Indices of its checks in the whole request. */
  readonly places: readonly number[];
  /** The counter of a rule with prefetch, whose holders the part's script does not see (held-elsewhere.ts). */
  readonly heldElsewhere?: string | undefined;
}

/** Splits by hash tag, or by another name for the keys that one script reaches: checks with equal tags certainly share a slot. */
export function splitByTag(request: StoreRequest, reachOf: (key: string) => string = hashTag): Part[] {
  const { checks } = request;
  const groups = groupBy([...checks.keys()], (i) => reachOf(checks[i]!.key));
  return groups.map((places) => ({
    tag: hashTag(checks[places[0]!]!.key),
    places,
    request:
      groups.length === 1
        ? request
        : {
            ...request,
            checks: places.map((i) => relocated(checks[i]!, places)),
            holdMs: places.some((i) => checks[i]!.held !== undefined) ? request.holdMs : undefined,
            fetches: request.fetches && places.map((i) => request.fetches![i]),
          },
  }));
}

/**
 * Splits key by key, for when not even the keys of one tag can be decided together. A candidate is then decided on its own, like a shadow
 * rule.
 */
export function splitByKey(request: StoreRequest): Part[] {
  const keys = new Set(request.checks.map(({ key }) => key));
  return [...keys].map((key) => {
    const places = [...request.checks.keys()].filter((i) => request.checks[i]!.key === key);
    const checks = places.map((i) => withoutPrefetch(relocated(request.checks[i]!, places)));
    return {
      tag: hashTag(key),
      places,
      request: { ...request, checks, id: undefined, fetches: undefined, holdMs: undefined },
      heldElsewhere: places.some((i) => request.checks[i]!.plan.prefetchMs > 0) ? key : undefined,
    };
  });
}

/** Its grants have a separate key, which may be on another node. */
function withoutPrefetch(check: Check): Check {
  return check.plan.prefetchMs === 0 ? check : { ...check, plan: { ...check.plan, prefetchMs: 0 } };
}

/** A candidate has its live check's key, and so its tag: both are in one part. */
function relocated(check: Check, places: readonly number[]): Check {
  return check.live < 0 ? check : { ...check, live: places.indexOf(check.live) };
}

/** Joins the parts' replies, and lists what to undo because another part refused. */
export function joinReplies(
  parts: readonly Part[],
  replies: readonly StoreReply[],
): { reply: StoreReply; undos: Undo[] } {
  const judged = parts.map(({ request }, p) => replies[p]!.repeated?.checks ?? request.checks);
  const refusing = judged.map((checks, p) => checks.some((check, i) => refuses(check, replies[p]!.verdicts[i]!)));
  // A part that other rules decided earlier may have different checks than those requested now.
  const inPlace = parts.every(({ places }, p) => places.length === judged[p]!.length);
  const verdicts: Verdict[] = [];
  const timesMs: number[] = [];
  const entryIds: string[] = [];
  const checks: Check[] = [];
  const undos: Undo[] = [];
  const grants: (Grant | undefined)[] = [];
  parts.forEach((part, p) => {
    const found = replies[p]!;
    const { entryId } = found.repeated ?? part.request;
    const elsewhere = refusing.some((refused, other) => refused && other !== p);
    if (elsewhere) undos.push(...undoOf(part, found, (check) => check.charge !== true));
    judged[p]!.forEach((check, i) => {
      const at = inPlace ? part.places[i]! : verdicts.length;
      verdicts[at] = elsewhere ? givenBack(check, found.verdicts[i]!) : found.verdicts[i]!;
      timesMs[at] = found.timesMs?.[i] ?? found.nowMs;
      entryIds[at] = entryId;
      checks[at] = check;
      grants[at] = found.grants?.[i];
    });
  });
  const repeated = replies.find((reply) => reply.repeated !== undefined)?.repeated;
  const reply: StoreReply = { nowMs: replies[0]!.nowMs, verdicts, timesMs, entryIds, guarantee: "compensated" };
  const answered = grants.some((given) => given !== undefined) ? { ...reply, grants } : reply;
  return { reply: repeated === undefined ? answered : { ...answered, repeated: { ...repeated, checks } }, undos };
}

/** The earlier answer to an id, joined from its records, one per tag. */
export function joinRecalled(records: readonly StoreReply[]): StoreReply | undefined {
  const replies = records.flatMap(({ repeated, ...reply }) => (repeated === undefined ? [] : [{ ...reply, repeated }]));
  const [first] = replies;
  if (first === undefined || replies.length === 1) return first;
  return {
    ...first,
    guarantee: "compensated",
    verdicts: replies.flatMap(({ verdicts }) => verdicts),
    timesMs: replies.flatMap(({ verdicts, nowMs, timesMs }) => timesMs ?? verdicts.map(() => nowMs)),
    entryIds: replies.flatMap(({ verdicts, repeated }) => verdicts.map(() => repeated.entryId)),
    repeated: { ...first.repeated, checks: replies.flatMap(({ repeated }) => repeated.checks) },
  };
}

/**
 * The refunds that undo a part, one per tag, if it charged anything. (A charge stands even if another part refuses, but not if the failure
 * policy counts it instead.) A part that was found already decided is undone too: its charge stands, or its record would be gone, and no
 * other attempt's claim on it is touched.
 */
export function undoOf(
  { request }: Part,
  found: StoreReply,
  isUndone: (check: Check, i: number) => boolean = () => true,
): Undo[] {
  const { checks, entryId } = found.repeated ?? request;
  const charges = checks.flatMap((check, i) =>
    found.verdicts[i]!.charged && isUndone(check, i) ? [chargedBy(found, i, check, entryId)] : [],
  );
  if (charges.length === 0) return [];
  const lifeMs = Math.max(...found.verdicts.map(({ charged, resetAfterMs }) => (charged ? resetAfterMs : 0)));
  const byTag = groupByTag(charges, ({ check }) => check.key);
  return byTag.map((sameTag) => ({ charges: sameTag, id: request.id, attempt: request.entryId, lifeMs }));
}

export function refuses(check: Check, found: Verdict): boolean {
  return check.plan.mode === "enforce" && !found.allowed;
}

/** The verdict after its charge is given back. */
export function givenBack(check: Check, found: Verdict): Verdict {
  if (!found.charged || check.charge) return found;
  const remaining = Math.min(capacityOf(check.plan.policy), found.remaining + check.cost);
  return verdict(found.allowed, remaining, found.retryAfterMs, found.resetAfterMs, found.reason);
}

/** Groups items by the hash tag of their key: one script reaches all of a group. */
export function groupByTag<T>(entries: readonly T[], keyOf: (entry: T) => string): T[][] {
  return groupBy(entries, (entry) => hashTag(keyOf(entry)));
}

function groupBy<T>(entries: readonly T[], nameOf: (entry: T) => string): T[][] {
  const byName = new Map<string, T[]>();
  for (const entry of entries) {
    const name = nameOf(entry);
    const group = byName.get(name);
    if (group === undefined) byName.set(name, [entry]);
    else group.push(entry);
  }
  return [...byName.values()];
}
