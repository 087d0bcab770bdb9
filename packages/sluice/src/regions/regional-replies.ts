/**
 * Replies about requests under rules of both scopes: what a pool's verdict means, and one reply from those of the region and of home.
 * In: replies of the two stores. Out: one reply. Pure.
 */
import type { Verdict } from "../algorithms/model.js";
import type { Check } from "../check.js";
import type { StoreReply, StoreRequest } from "../store/store.js";

/** The wait reported to a client whose request found no unit in time. */
const RETRY_MS = 100;

export function pass(found: Verdict): void {
  found.allowed = true;
  found.remaining = Math.max(0, found.remaining);
  found.retryAfterMs = 0;
  found.reason = undefined;
}

/** For checks whose units did not arrive in time. */
export function refused(reply: StoreReply, lacking: readonly number[]): StoreReply {
  for (const i of lacking) reply.verdicts[i]!.retryAfterMs = RETRY_MS;
  return reply;
}

/** A repeated reply, which a store keeps with the pools' own verdicts: a reset below 0 if a fetch is due, a refusal without a wait. */
export function asFirstAnswered(reply: StoreReply): StoreReply {
  const { repeated, verdicts } = reply;
  const pooled = repeated?.checks.map(({ plan }) => plan.policy.stored === "pool") ?? [];
  if (repeated === undefined || !pooled.includes(true)) return reply;
  const isLacking = (i: number): boolean => pooled[i]! && !verdicts[i]!.allowed && verdicts[i]!.retryAfterMs === 0;
  const lacking = [...pooled.keys()].filter(isLacking);
  const isEnforced = (i: number): boolean => repeated.checks[i]!.plan.mode === "enforce";
  const isRefused = verdicts.some(({ allowed }, i) => !allowed && isEnforced(i) && !isLacking(i));
  for (const found of verdicts) if (found.resetAfterMs < 0) found.resetAfterMs = -1 - found.resetAfterMs;
  for (const i of lacking) if (isRefused || !isEnforced(i)) pass(verdicts[i]!);
  return { ...refused(reply, isRefused ? [] : lacking.filter(isEnforced)), guarantee: "prefetched" };
}

/** A store's reply to some checks of a request. */
interface PartReply {
  readonly reply: StoreReply;
  readonly checks: readonly Check[];
}

/** One reply to a request that at least one store had decided before, possibly under other rules. */
export function joinRepeated(
  parts: readonly PartReply[],
  { entryId, rulesVersion }: Pick<StoreRequest, "entryId" | "rulesVersion">,
): StoreReply {
  const { reply: last } = parts.at(-1)!;
  const checks: Check[] = [];
  for (const { reply, checks: asked } of parts) {
    const before = checks.length;
    for (const check of reply.repeated?.checks ?? asked)
      checks.push(check.live < 0 ? check : { ...check, live: before + check.live });
  }
  const judged = parts.find(({ reply }) => reply.judged !== undefined)?.reply.judged;
  return {
    nowMs: last.nowMs,
    guarantee: last.guarantee,
    verdicts: parts.flatMap(({ reply }) => reply.verdicts),
    timesMs: parts.flatMap(({ reply }) => reply.timesMs ?? reply.verdicts.map(() => reply.nowMs)),
    entryIds: parts.flatMap(({ reply }) => {
      return reply.entryIds ?? reply.verdicts.map(() => reply.repeated?.entryId ?? entryId);
    }),
    repeated: { entryId, rulesVersion, checks, atMs: last.repeated?.atMs ?? last.nowMs },
    ...(judged && { judged: { ...judged, checks } }),
  };
}

/** The same for what both stores remember about an id. */
export function joinRecalled(replies: readonly StoreReply[]): StoreReply | undefined {
  const [first] = replies;
  if (first?.repeated === undefined || replies.length === 1) return first;
  return joinRepeated(
    replies.map((reply) => ({ reply, checks: reply.repeated!.checks })),
    first.repeated,
  );
}
