/**
 * Leases held, by rule: those that this instance granted, until they are released here or expire. One released through another instance
 * counts until it expires.
 */
import type { DecidedRequest, Decision, Limiter } from "sluice";

/** Further leases are not tracked: the gauge then underreports. */
const MOST_LEASES = 100_000;
/** Bounds sweeps of a full table for expired leases: one per request would delay every request. */
const LOOK_EVERY_MS = 1_000;
/** Suffix of a concurrency rule's counter; a candidate's is in upper case and blocks no request. */
const CONCURRENCY = ":c";

interface Held {
  readonly rules: readonly string[];
  endsAtMs: number;
}

export class LeaseCounts {
  readonly #held = new Map<string, Held>();
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  watch(limiter: Limiter): void {
    limiter.on("released", (leaseId) => this.#held.delete(leaseId));
    limiter.on("renewed", (leaseId, expiresAfterMs) => {
      const held = this.#held.get(leaseId);
      if (held === undefined) return;
      if (expiresAfterMs === 0) this.#held.delete(leaseId);
      else held.endsAtMs = performance.now() + expiresAfterMs;
    });
  }

  granted({ lease, checks }: Decision, request: DecidedRequest): void {
    if (lease === undefined) return;
    const isFull = this.#held.size >= MOST_LEASES;
    if (isFull && performance.now() - this.#lookedAtMs >= LOOK_EVERY_MS) this.#forgetEnded();
    if (this.#held.size >= MOST_LEASES) return;
    const rules = checks.filter((_, i) => request.checks[i]?.key.endsWith(CONCURRENCY)).map(({ rule }) => rule);
    this.#held.set(lease.id, { rules, endsAtMs: performance.now() + lease.expiresAfterMs });
  }

  read(): ReadonlyMap<string, number> {
    this.#forgetEnded();
    const counts = new Map<string, number>();
    for (const { rules } of this.#held.values())
      for (const rule of rules) counts.set(rule, (counts.get(rule) ?? 0) + 1);
    return counts;
  }

  #forgetEnded(): void {
    const nowMs = performance.now();
    this.#lookedAtMs = nowMs;
    for (const [id, { endsAtMs }] of this.#held) if (endsAtMs <= nowMs) this.#held.delete(id);
  }
}
