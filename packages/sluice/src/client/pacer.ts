/**
 * Keeps one caller below the quotas that a server has announced. In: what was sent, and what responses report. Out: how long to wait before
 * the next request. Time is an argument.
 *
 * Two things are known about a policy. From its quota and window: how many of our own requests may still be counted (windows and buckets
 * forget a request at the latest one window after its response; only approximate counters remember longer). From `remaining`: what the
 * server has left. If our own requests explain it, they determine exactly when the next one may go; if not, others share the quota (or
 * requests cost more than 1), and we wait as long as the server asks.
 */
import type { QuotaSignal } from "./rate-limit-signals.js";

interface Policy {
  quota: number | undefined;
  windowMs: number | undefined;
  /** When responses to our own requests arrived, oldest first. */
  answeredMs: number[];
  remaining: number | undefined;
  resetAtMs: number;
  /** Whether more is used up than by our own requests. */
  shared: boolean;
  /** Requests that started after `remaining` was announced and are not included in it. */
  startedSince: number;
}

/** A server may keep naming new policies; this many are remembered. */
const MOST_POLICIES = 64;
/** Own requests remembered per policy; a larger quota is left to `remaining`. */
const MOST_ANSWERS = 10_000;
const LOOK_AGAIN_MS = 10;

export class Pacer {
  readonly #policies = new Map<string, Policy>();
  #inFlight = 0;

  /** Milliseconds until a request can be sent without exceeding any known quota; 0 means now. */
  waitMs(nowMs: number): number {
    let waitMs = 0;
    for (const policy of this.#policies.values()) waitMs = Math.max(waitMs, this.#waitUnder(policy, nowMs));
    return waitMs;
  }

  /** Call when a request is sent. */
  started(): void {
    this.#inFlight++;
    for (const policy of this.#policies.values()) policy.startedSince++;
  }

  /**
   * Call when its response arrived, or will never arrive (then without signals). `counted` is false for a refusal, which charges nothing.
   */
  ended(end: { nowMs: number; signals: readonly QuotaSignal[]; counted: boolean }): void {
    this.#inFlight--;
    for (const signal of end.signals) this.#learn(signal, end.nowMs);
    const names = new Set(end.signals.map(({ name }) => name));
    for (const [name, policy] of this.#policies) {
      // Another route's policy, under which this request was not counted. A response that names none may count under all.
      if (names.size > 0 && !names.has(name)) policy.startedSince = Math.max(0, policy.startedSince - 1);
      else if (end.counted && policy.answeredMs.length < MOST_ANSWERS) policy.answeredMs.push(end.nowMs);
    }
    for (const { name } of end.signals) this.#judge(this.#policies.get(name), end.nowMs);
  }

  #learn(signal: QuotaSignal, nowMs: number): void {
    let policy = this.#policies.get(signal.name);
    if (policy === undefined) {
      if (this.#policies.size >= MOST_POLICIES) return;
      const unknown = { quota: undefined, windowMs: undefined, remaining: undefined };
      policy = { ...unknown, answeredMs: [], resetAtMs: 0, shared: true, startedSince: 0 };
      this.#policies.set(signal.name, policy);
    }
    policy.quota = signal.quota ?? policy.quota;
    policy.windowMs = signal.windowMs ?? policy.windowMs;
    if (signal.remaining === undefined) return;
    policy.remaining = signal.remaining;
    policy.resetAtMs = nowMs + (signal.resetAfterMs ?? 0);
    // Requests in flight may or may not be included already: assume not, which is the safe side.
    policy.startedSince = this.#inFlight;
  }

  #judge(policy: Policy | undefined, nowMs: number): void {
    if (policy?.quota === undefined || policy.windowMs === undefined || policy.remaining === undefined) return;
    policy.shared =
      policy.quota - policy.remaining > recent(policy.answeredMs, nowMs - policy.windowMs) + this.#inFlight;
  }

  #waitUnder(policy: Policy, nowMs: number): number {
    const { quota, windowMs, answeredMs } = policy;
    // A deny list refuses some requests whatever they wait, and says nothing about the others of this server.
    if (quota === 0) return 0;
    if (quota !== undefined && windowMs !== undefined) {
      const answered = recent(answeredMs, nowMs - windowMs);
      const over = answered + this.#inFlight + 1 - quota;
      // The whole quota is in flight: only a response can bring news, so look again soon.
      if (over > answered) return Math.max(LOOK_AGAIN_MS, windowMs / quota);
      if (over > 0) return answeredMs[over - 1]! + windowMs - nowMs;
      if (!policy.shared) return 0;
    }
    if (policy.remaining === undefined || policy.startedSince < policy.remaining) return 0;
    return Math.max(0, policy.resetAtMs - nowMs);
  }
}

/** How many arrived after `sinceMs`; drops the others. */
function recent(answeredMs: number[], sinceMs: number): number {
  const kept = answeredMs.findIndex((atMs) => atMs > sinceMs);
  answeredMs.splice(0, kept === -1 ? answeredMs.length : kept);
  return answeredMs.length;
}
