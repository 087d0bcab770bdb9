/**
 * The decision that a caller gets, made from the verdicts of its checks. Pure.
 */
import { MOST_UNITS, type Verdict } from "../algorithms/model.js";
import { capacityOf } from "../algorithms/policy.js";
import type { Check, CheckPlan } from "../check.js";
import {
  type CheckResult,
  type DecisionSummary,
  type Degraded,
  type Guarantee,
  NEVER_MS,
  type Reason,
  type Reservation,
} from "../decision.js";
import type { Admission } from "../shedding/load-shedder.js";
import type { SoleReply, SoleRequest } from "../sole-request.js";
import type { StoreReply, StoreRequest } from "../store/store.js";
import type { Lease } from "./lease.js";

/** `local`: this instance's fallback charged it; `nobody`: a failure policy answered without counting. */
export type Charger = "store" | "local" | "nobody";

/** What a decision is made from: the request and the store's reply. */
interface Source {
  readonly request: StoreRequest & { readonly admission?: Admission | undefined };
  readonly reply: StoreReply;
  readonly charger: Charger;
  readonly lease: Lease | undefined;
  readonly reservation?: Reservation | undefined;
  readonly degraded: Degraded | undefined;
}

/** What a refund needs to know about a decision. */
export interface Origin {
  readonly checks: readonly Check[];
  readonly verdicts: readonly Verdict[];
  readonly entryId: string;
  readonly nowMs: number;
  /** When each check was decided and the names of its entries, if not the same for all checks. */
  readonly timesMs: readonly number[] | undefined;
  readonly entryIds: readonly string[] | undefined;
  readonly id: string | undefined;
  readonly charger: Charger;
  readonly reply?: StoreReply;
}

/** Shared by all decisions that violate no rule. */
const NONE: readonly string[] = Object.freeze([]);

/** The answer to a request. Its enumerable fields are the public JSON, in the order in which the constructor sets them. */
export class Decision implements DecisionSummary {
  declare readonly allowed: boolean;
  declare readonly rule?: string;
  declare readonly limit?: number;
  declare readonly remaining?: number;
  declare readonly debt?: number;
  declare readonly retryAfterMs: number;
  declare readonly resetAfterMs: number;
  declare readonly delayMs: number;
  declare readonly reason?: Reason;
  declare readonly violated: readonly string[];
  declare readonly rulesVersion: number;
  declare readonly guarantee: Guarantee;
  declare readonly checks: readonly CheckResult[];
  /** Set only if a concurrency rule holds a place, or a load-shedding rule counts requests in flight. */
  declare readonly lease?: Lease;
  declare readonly reservation?: Reservation;
  declare readonly degraded?: Degraded;
  // Request and reply are kept as they are and read only by a refund or an explanation: most decisions need neither.
  readonly #request: StoreRequest;
  readonly #reply: StoreReply;
  readonly #charger: Charger;

  /** With `soleReply`: the fast path for a request of one check. It sets the fields in the same order. */
  constructor(source: Source | SoleRequest, soleReply?: SoleReply) {
    if (soleReply !== undefined) {
      const request = source as SoleRequest;
      fillSole(this, request, soleReply);
      this.#request = request;
      this.#reply = soleReply;
      this.#charger = "store";
      return;
    }
    const { request, reply, charger, lease, reservation, degraded } = source as Source;
    const { checks, rulesVersion } = reply.repeated ?? request;
    const { verdicts } = reply;
    // Allocate the right length: an array that grows by its first push reserves room for seventeen.
    const results = new Array<CheckResult>(checks.length);
    let violated: string[] | undefined;
    let speaker = -1;
    let delayMs = 0;
    // A repeated answer counts the delay from now.
    const agedMs = reply.repeated === undefined ? 0 : Math.max(0, reply.repeated.atMs - reply.nowMs);
    for (let i = 0; i < checks.length; i++) {
      const { plan } = checks[i]!;
      const verdict = verdicts[i]!;
      results[i] = resultOf(plan, verdict);
      if (plan.mode !== "enforce") continue;
      if (verdict.delayMs > delayMs) delayMs = verdict.delayMs;
      if (!verdict.allowed) {
        if (violated === undefined) violated = [plan.rule];
        else violated.push(plan.rule);
      }
      if (speaker < 0 || speaksBefore(checks, verdicts, i, speaker)) speaker = i;
    }
    const shed = request.admission?.results;
    if (shed !== undefined) {
      // Load-shedding results follow the counters. A refusal stands alone: nothing was counted. A pass speaks for the decision only if no
      // counter does.
      for (let i = 0; i < shed.length; i++) {
        const result = shed[i]!;
        results.push(result);
        if (result.mode !== "enforce") continue;
        if (!result.allowed) violated = [...(violated ?? NONE), result.rule];
        const isLonger = speaker >= 0 && result.retryAfterMs > results[speaker]!.retryAfterMs;
        if (speaker < 0 || (!result.allowed && isLonger)) speaker = results.length - 1;
      }
    }
    this.allowed = violated === undefined;
    const waitMs = violated === undefined && delayMs > agedMs ? delayMs - agedMs : 0;
    if (speaker < 0) {
      this.retryAfterMs = 0;
      this.resetAfterMs = 0;
      this.delayMs = waitMs;
    } else {
      const result = results[speaker]!;
      this.rule = result.rule;
      this.limit = result.limit;
      this.remaining = result.remaining;
      if (result.debt !== undefined) this.debt = result.debt;
      this.retryAfterMs = result.retryAfterMs;
      this.resetAfterMs = result.resetAfterMs;
      this.delayMs = waitMs;
      if (result.reason !== undefined) this.reason = result.reason;
    }
    this.violated = violated ?? NONE;
    this.rulesVersion = rulesVersion;
    this.guarantee = reply.guarantee;
    this.checks = results;
    if (lease !== undefined) this.lease = lease;
    if (reservation !== undefined) this.reservation = reservation;
    if (degraded !== undefined) this.degraded = degraded;
    this.#request = request;
    this.#reply = reply;
    this.#charger = charger;
  }

  static originOf(decision: Decision): Origin {
    const { verdicts, nowMs, timesMs, entryIds, repeated } = decision.#reply;
    const { checks, entryId } = repeated ?? decision.#request;
    const { id } = decision.#request;
    const { charger, reply } = { charger: decision.#charger, reply: decision.#reply };
    return { checks, verdicts, entryId, nowMs, timesMs, entryIds, id, charger, reply };
  }

  /** Whether the decision is that of an earlier request with the same id. */
  static isRepeat(decision: Decision): boolean {
    return decision.#reply.repeated !== undefined;
  }

  /** The plan behind a decision of exactly one counter, if the request was not a repeat; otherwise undefined. */
  static onlyPlanOf(decision: Decision): CheckPlan | undefined {
    const { checks } = decision.#request;
    const isOnly = checks.length === 1 && decision.checks.length === 1 && decision.#reply.repeated === undefined;
    return isOnly ? checks[0]!.plan : undefined;
  }
}

/** A single counter's answer, which is the whole decision. */
function fillSole(
  made: { -readonly [K in keyof Decision]: Decision[K] },
  request: SoleRequest,
  reply: SoleReply,
): void {
  const result = resultOf(request.check.plan, reply.verdict);
  made.allowed = result.allowed;
  made.rule = result.rule;
  made.limit = result.limit;
  made.remaining = result.remaining;
  if (result.debt !== undefined) made.debt = result.debt;
  made.retryAfterMs = result.retryAfterMs;
  made.resetAfterMs = result.resetAfterMs;
  made.delayMs = 0;
  if (result.reason !== undefined) made.reason = result.reason;
  made.violated = result.allowed ? NONE : [result.rule];
  made.rulesVersion = request.rulesVersion;
  made.guarantee = reply.guarantee;
  made.checks = [result];
}

function resultOf(plan: CheckPlan, verdict: Verdict): CheckResult {
  const result: { -readonly [K in keyof CheckResult]: CheckResult[K] } = {
    rule: plan.rule,
    mode: plan.mode,
    allowed: verdict.allowed,
    limit: plan.policy.limit,
    // Some Redis clients read 2^53 - 1 as 2^53.
    remaining: verdict.remaining > 0 ? Math.min(verdict.remaining, capacityOf(plan.policy)) : 0,
    retryAfterMs: verdict.retryAfterMs,
    resetAfterMs: verdict.resetAfterMs,
  };
  if (verdict.remaining < 0) result.debt = Math.min(-verdict.remaining, MOST_UNITS);
  if (verdict.reason !== undefined) result.reason = verdict.reason;
  if (plan.variant !== undefined) result.variant = plan.variant;
  if (verdict.delayMs > 0) result.delayMs = verdict.delayMs;
  return result;
}

/** Whether check `a` matters more to a client than `b`: a refusal before a pass, then the longer wait, then the smaller remaining share. */
function speaksBefore(checks: readonly Check[], verdicts: readonly Verdict[], a: number, b: number): boolean {
  const first = verdicts[a]!;
  const second = verdicts[b]!;
  if (first.allowed !== second.allowed) return !first.allowed;
  if (!first.allowed) return waitOf(first) > waitOf(second);
  return shareOf(first, checks[a]!) < shareOf(second, checks[b]!);
}

/** A real wait may be longer than the number that stands for "never" (docs/decisions/0007). */
function waitOf({ retryAfterMs }: Verdict): number {
  return retryAfterMs === NEVER_MS ? Number.POSITIVE_INFINITY : retryAfterMs;
}

/** A limit of 0 has nothing left, whoever looks: 0 / 0 would be smaller than no share. */
function shareOf({ remaining }: Verdict, { plan }: Check): number {
  return plan.policy.limit === 0 ? Math.min(remaining, 0) : remaining / plan.policy.limit;
}
