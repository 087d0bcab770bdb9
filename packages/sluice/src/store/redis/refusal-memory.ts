/**
 * Negative cache: remembers refusals whose end is known, so that an attacker's traffic costs Redis nothing; until then the same request is
 * refused here. Exact where it matters: admissions elsewhere can only postpone the end. Events that could bring it forward are either
 * noticed (this instance's refunds and resets forget; a changed rule has another plan or policy) or read: what other instances give back or
 * reset is known within about a second (`freed-keys.ts`). If it cannot be read, no refusal is kept for longer than that.
 *
 * A request with one check at cost 1 is cached until its end: nothing in its answer changes but the times. One with several checks, or
 * another cost, is cached for a second: the numbers of its other rules move, and so does what is left for a smaller cost.
 *
 * In: requests and their replies. Out: a reply, or nothing. Not cached: requests with an id (their record lives in Redis), looks, charges
 * (they count, refused or not), concurrency (a place may be released at any time), rules with a candidate (it also counts the refused
 * traffic).
 */
import { beginsBlock } from "../../algorithms/block.js";
import { type Verdict, verdict } from "../../algorithms/model.js";
import type { Policy } from "../../algorithms/policy.js";
import type { Check } from "../../check.js";
import { ExpiringMap } from "../expiring-map.js";
import type { StoreReply, StoreRequest } from "../store.js";

interface Refusal {
  /** On the monotonic clock, like all times that this map receives. */
  readonly endsAtMs: number;
  readonly bytes: 0;
  readonly sentMonotonicMs: number;
  readonly answeredMonotonicMs: number;
  readonly checks: readonly Check[];
  /** The policy of the refusing check: `adapt` replaces the policy within a plan. */
  readonly policy: Policy;
  readonly reply: StoreReply;
}

/** About half a kilobyte each. */
const MOST_REFUSALS = 20_000;
/**
 * How many freed keys are remembered, and for how long, to recognise refusals that were in flight when a key was freed. Slower ones are
 * covered by reading the freed keys.
 */
const MOST_FREED = 20_000;
const FREED_MS = 2_000;
/** How long a refusal is valid without news of what other instances have freed. */
const UNHEARD_MS = 1_000;

/** When a request was sent (before Redis saw it) and when its reply arrived. */
interface Asked {
  readonly sentMonotonicMs: number;
  readonly answeredMonotonicMs: number;
}

interface Freed {
  readonly endsAtMs: number;
  readonly bytes: 0;
  readonly atMonotonicMs: number;
}

/** Until when everything that other instances have freed is known. */
type HeardUntil = (nowMonotonicMs: number) => number;

export class RefusalMemory {
  /** Keyed by the refusing check with the longest wait. */
  readonly #refusals = new ExpiringMap<Refusal>();
  readonly #freed = new ExpiringMap<Freed>();
  #allFreedAtMonotonicMs = Number.NEGATIVE_INFINITY;
  readonly #heardUntil: HeardUntil;

  constructor(heardUntilMonotonicMs: HeardUntil) {
    this.#heardUntil = heardUntilMonotonicMs;
  }

  /** The reply to a request that is certainly still refused. */
  recall(request: StoreRequest, nowMonotonicMs: number): StoreReply | undefined {
    if (this.#refusals.count === 0 || !mayBeRemembered(request)) return undefined;
    for (let i = 0; i < request.checks.length; i++) {
      const check = request.checks[i]!;
      const refusal = this.#refusals.get(check.key);
      if (refusal === undefined || refusal.endsAtMs <= nowMonotonicMs || refusal.policy !== check.plan.policy) continue;
      if (!sameChecks(refusal.checks, request.checks) || !this.#holds(refusal, nowMonotonicMs)) continue;
      return later(refusal, nowMonotonicMs);
    }
    return undefined;
  }

  /**
   * The end counts from when the request was sent, so it is never too late. The reported wait counts from the answer, so a client that
   * waits that long is not too early.
   */
  remember(request: StoreRequest, reply: StoreReply, { sentMonotonicMs, answeredMonotonicMs }: Asked): void {
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
    const { key, plan } = request.checks[refuser]!;
    if (this.#wasFreedSince(key, sentMonotonicMs)) return;
    const holdsMs = isSteady(request.checks, reply.verdicts[refuser]!) ? waitMs : Math.min(waitMs, UNHEARD_MS);
    if (this.#refusals.count >= MOST_REFUSALS) this.#refusals.evict(sentMonotonicMs);
    const refusal = {
      endsAtMs: sentMonotonicMs + holdsMs,
      bytes: 0,
      sentMonotonicMs,
      answeredMonotonicMs,
      checks: request.checks,
      policy: plan.policy,
      reply,
    } as const;
    this.#refusals.set(key, refusal, sentMonotonicMs);
  }

  /** Counters have room again; undefined means all. A refusal decided before this may still be answered after it: it is not cached. */
  forget(keys: readonly string[] | undefined, nowMonotonicMs: number): void {
    if (keys === undefined) {
      this.#refusals.clear();
      this.#allFreedAtMonotonicMs = nowMonotonicMs;
      return;
    }
    for (const key of keys) {
      this.#refusals.delete(key);
      if (this.#freed.count >= MOST_FREED) this.#freed.evict(nowMonotonicMs);
      const freed: Freed = { endsAtMs: nowMonotonicMs + FREED_MS, bytes: 0, atMonotonicMs: nowMonotonicMs };
      this.#freed.set(key, freed, nowMonotonicMs);
    }
  }

  #wasFreedSince(key: string, sentMonotonicMs: number): boolean {
    if (this.#allFreedAtMonotonicMs >= sentMonotonicMs) return true;
    const freed = this.#freed.count === 0 ? undefined : this.#freed.get(key);
    return freed !== undefined && freed.atMonotonicMs >= sentMonotonicMs;
  }

  /** Whether it is known that nothing has freed the counter since. */
  #holds({ sentMonotonicMs }: Refusal, nowMonotonicMs: number): boolean {
    if (nowMonotonicMs - sentMonotonicMs < UNHEARD_MS) return true;
    return nowMonotonicMs - this.#heardUntil(nowMonotonicMs) < UNHEARD_MS;
  }
}

function mayBeRemembered({ charge, id, checks }: StoreRequest): boolean {
  if (!charge || id !== undefined) return false;
  for (let i = 0; i < checks.length; i++) if (checks[i]!.charge === true) return false;
  return true;
}

/** Whether only the times in the answer change until its end. Counters with held units, turns or pools are freed in other ways too. */
function isSteady([check, ...others]: readonly Check[], { remaining, reason }: Verdict): boolean {
  if (check === undefined || others.length > 0 || check.cost !== 1 || remaining > 0) return false;
  const { policy, prefetchMs, maxWaitMs, estimate } = check.plan;
  if (policy.stored === "pool" || prefetchMs > 0 || maxWaitMs > 0 || estimate !== undefined) return false;
  return reason === "limit" || reason === "blocked";
}

/** The same rules, unchanged, for the same keys at the same costs: another cost would have another wait. */
function sameChecks(a: readonly Check[], b: readonly Check[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (a[i]!.key !== b[i]!.key || a[i]!.plan !== b[i]!.plan || a[i]!.cost !== b[i]!.cost) return false;
  }
  return true;
}

/** The same reply some time later. Rules that did not refuse report the same numbers as before; a refusal may have started a block. */
function later({ reply, checks, answeredMonotonicMs }: Refusal, nowMonotonicMs: number): StoreReply {
  // A request sent before the answer arrived may be looked up after it.
  const whole = Math.max(0, Math.floor(nowMonotonicMs - answeredMonotonicMs));
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
