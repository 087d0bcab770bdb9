/**
 * Remembers refusals whose end is known, so that an attacker's traffic costs Redis nothing: until then the same request is
 * refused here. Exact where it matters: admissions elsewhere can only put the end off. Events that could bring it forward are either
 * noticed (this instance's refunds and resets forget; a changed rule has another plan or policy) or heard of: what other instances give
 * back or reset is known within about a second (`freed-keys.ts`). Where it cannot be, no refusal is remembered for longer than that.
 *
 * A request of one check at cost 1 is remembered to its end: nothing of its answer changes but the times. One of several, or of another
 * cost, is remembered for a second: the numbers of its other rules move, and so does what is left for a smaller cost.
 *
 * In: requests and their replies. Out: a reply, or nothing. Not remembered: requests with an id (their record lives in Redis),
 * looks, charges (they count, refused or not), concurrency (a place may be released at any time), rules with a candidate (it counts the
 * refused traffic too).
 */
import { beginsBlock } from "../../algorithms/block.js";
import { type Verdict, verdict } from "../../algorithms/model.js";
import type { Policy } from "../../algorithms/policy.js";
import type { Check } from "../../check.js";
import { ExpiringMap } from "../expiring-map.js";
import type { StoreReply, StoreRequest } from "../store.js";

interface Refusal {
  /** On the monotonic clock, as all instants that this map is given. */
  readonly endsAtMs: number;
  readonly bytes: 0;
  readonly sentMonotonicMs: number;
  readonly answeredMonotonicMs: number;
  readonly checks: readonly Check[];
  /** Of the check that refuses: `adapt` puts another into the same plan. */
  readonly policy: Policy;
  readonly reply: StoreReply;
}

/** About half a kilobyte each. */
const MOST_REFUSALS = 20_000;
/** Freed keys that are remembered, to tell refusals that were under way meanwhile; and for how long: what takes longer is heard of. */
const MOST_FREED = 20_000;
const FREED_MS = 2_000;
/** How long a refusal holds without word of what other instances have freed. */
const UNHEARD_MS = 1_000;

/** When a request left, before Redis saw it, and when its reply was here. */
interface Asked {
  readonly sentMonotonicMs: number;
  readonly answeredMonotonicMs: number;
}

interface Freed {
  readonly endsAtMs: number;
  readonly bytes: 0;
  readonly atMonotonicMs: number;
}

/** How far everything that other instances have freed is known. */
type HeardUntil = (nowMonotonicMs: number) => number;

export class RefusalMemory {
  /** By the key of the refusing check with the longest wait. */
  readonly #refusals = new ExpiringMap<Refusal>();
  readonly #freed = new ExpiringMap<Freed>();
  #allFreedAtMonotonicMs = Number.NEGATIVE_INFINITY;
  readonly #heardUntil: HeardUntil;

  constructor(heardUntilMonotonicMs: HeardUntil) {
    this.#heardUntil = heardUntilMonotonicMs;
  }

  /** The reply to a request that is still refused for certain. */
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
   * The end is counted from when the request was sent: it is never put too late. The wait that is told is counted from the answer: a
   * client that waits for so long is not too early.
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

  /**
   * Counters have room again; undefined stands for all. A refusal that was decided before may be answered after this: it is not remembered.
   */
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

  /** Whether it is known that nothing freed the counter since. */
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

/** Whether nothing of the answer changes until its end but the times. Units that are held, turns and pools free counters by other ways. */
function isSteady([check, ...others]: readonly Check[], { remaining, reason }: Verdict): boolean {
  if (check === undefined || others.length > 0 || check.cost !== 1 || remaining > 0) return false;
  const { policy, prefetchMs, maxWaitMs, estimate } = check.plan;
  if (policy.stored === "pool" || prefetchMs > 0 || maxWaitMs > 0 || estimate !== undefined) return false;
  return reason === "limit" || reason === "blocked";
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
function later({ reply, checks, answeredMonotonicMs }: Refusal, nowMonotonicMs: number): StoreReply {
  // A request that was sent before the answer came may be asked about after it.
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
