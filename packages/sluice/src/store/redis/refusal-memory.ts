/**
 * Remembers refusals whose end is known, so that an attacker's traffic costs Redis nothing: until then the same request is
 * refused here. Exact where it matters: admissions elsewhere can only put the end off. Events that could bring it forward are either
 * noticed (this instance's refunds and resets forget; a changed rule has another plan) or bounded (what another instance
 * refunds or resets is seen within a second, for no refusal is remembered longer).
 *
 * In: requests and their replies. Out: a reply, or nothing. Not remembered: requests with an id (their record lives in Redis),
 * looks, charges (they count, refused or not), concurrency (a place may be released at any time), rules with a candidate (it counts the
 * refused traffic too).
 */
import { beginsBlock } from "../../algorithms/block.js";
import { type Verdict, verdict } from "../../algorithms/model.js";
import type { Check } from "../../check.js";
import { ExpiringMap } from "../expiring-map.js";
import type { StoreReply, StoreRequest } from "../store.js";

interface Refusal {
  /** On the monotonic clock, as all instants that this map is given. */
  readonly endsAtMs: number;
  readonly bytes: 0;
  readonly sinceMonotonicMs: number;
  readonly checks: readonly Check[];
  readonly reply: StoreReply;
}

const MOST_REFUSALS = 10_000;
const LONGEST_MEMORY_MS = 1_000;

export class RefusalMemory {
  /** By the key of the refusing check with the longest wait. */
  readonly #refusals = new ExpiringMap<Refusal>();

  /** The reply to a request that is still refused for certain. */
  recall(request: StoreRequest, nowMonotonicMs: number): StoreReply | undefined {
    if (this.#refusals.count === 0 || !mayBeRemembered(request)) return undefined;
    for (let i = 0; i < request.checks.length; i++) {
      const refusal = this.#refusals.get(request.checks[i]!.key);
      if (refusal === undefined || refusal.endsAtMs <= nowMonotonicMs || !sameChecks(refusal.checks, request.checks))
        continue;
      return later(refusal, nowMonotonicMs - refusal.sinceMonotonicMs);
    }
    return undefined;
  }

  /** `sinceMonotonicMs`: when the request was made, before Redis saw it; so the end is never put too late. */
  remember(request: StoreRequest, reply: StoreReply, sinceMonotonicMs: number): void {
    if (!mayBeRemembered(request)) return;
    let waitMs = 0;
    let refuser = -1;
    for (let i = 0; i < request.checks.length; i++) {
      const { plan } = request.checks[i]!;
      const found = reply.verdicts[i]!;
      if (plan.mode === "candidate" || found.reason === "concurrency") return;
      if (plan.mode === "enforce" && !found.allowed && found.retryAfterMs > waitMs) {
        waitMs = found.retryAfterMs;
        refuser = i;
      }
    }
    if (refuser < 0) return;
    const endsAtMs = sinceMonotonicMs + Math.min(waitMs, LONGEST_MEMORY_MS);
    if (this.#refusals.count >= MOST_REFUSALS) this.#refusals.evict(sinceMonotonicMs);
    this.#refusals.set(
      request.checks[refuser]!.key,
      { endsAtMs, bytes: 0, sinceMonotonicMs, checks: request.checks, reply },
      sinceMonotonicMs,
    );
  }

  forget(keys: readonly string[]): void {
    for (const key of keys) this.#refusals.delete(key);
  }
}

function mayBeRemembered({ charge, id, checks }: StoreRequest): boolean {
  if (!charge || id !== undefined) return false;
  for (let i = 0; i < checks.length; i++) if (checks[i]!.charge === true) return false;
  return true;
}

/** The same rules, as they stand, for the same keys at the same costs: another cost would have another wait. */
function sameChecks(a: readonly Check[], b: readonly Check[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (a[i]!.key !== b[i]!.key || a[i]!.plan !== b[i]!.plan || a[i]!.cost !== b[i]!.cost) return false;
  }
  return true;
}

/** The same reply some time later. Rules that did not refuse report the same numbers as then; a refusal may have begun a block. */
function later({ reply, checks }: Refusal, elapsedMs: number): StoreReply {
  const whole = Math.floor(elapsedMs);
  const verdicts = reply.verdicts.map((found, i): Verdict => {
    const { allowed, remaining, reason } = found;
    const resetAfterMs = Math.max(0, found.resetAfterMs - whole);
    if (allowed) return verdict(true, remaining, 0, resetAfterMs, reason);
    const retryAfterMs = Math.max(1, found.retryAfterMs - whole);
    const isBlocked = checks[i]!.block !== undefined && beginsBlock(reason);
    if (!isBlocked) return verdict(false, remaining, retryAfterMs, resetAfterMs, reason);
    return verdict(false, Math.min(0, remaining), retryAfterMs, resetAfterMs, "blocked");
  });
  return { nowMs: reply.nowMs + whole, verdicts, guarantee: reply.guarantee, isRemembered: true };
}
