/**
 * The naive judge of the exact algorithms: keeps everything that was ever admitted and counts it anew each time. Slow, and
 * simple enough to be believed. Rates are kept as whole numbers of any size (bigint), in the textbook form of each algorithm.
 */
import type { Policy } from "../../packages/sluice/src/algorithms/policy.js";

interface Admission {
  readonly atMs: number;
  readonly cost: number;
}

export class Oracle {
  readonly #policy: Policy;
  #admitted: Admission[] = [];
  /** Token bucket: tokens times scaleMs, at `#filledAtMs`. */
  #tokens: bigint;
  #filledAtMs = 0n;
  /** GCRA: theoretical arrival time, times amount. */
  #arrival = 0n;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#tokens = "capacity" in policy ? BigInt(policy.capacity) * BigInt(policy.scaleMs) : 0n;
  }

  /** Whether a request of this cost may pass at an instant, whatever else may happen later. */
  allows(cost: number, atMs: number): boolean {
    if (cost === 0) return true;
    const policy = this.#policy;
    switch (policy.stored) {
      case "token-bucket":
        return this.#tokensAt(atMs) >= BigInt(cost) * BigInt(policy.scaleMs);
      case "gcra":
        return (
          this.#arrivalAfter(cost, atMs) - BigInt(atMs) * BigInt(policy.amount) <=
          BigInt(policy.capacity) * BigInt(policy.scaleMs)
        );
      case "fixed-window":
        return this.#used(atMs - (atMs % policy.windowMs), atMs) + cost <= policy.limit;
      case "rolling-window":
      case "rolling-window-packed": {
        const last = this.#admitted.at(-1);
        const tooClose = last !== undefined && atMs - last.atMs < policy.minIntervalMs;
        return !tooClose && this.#used(atMs - policy.windowMs + 1, atMs) + cost <= policy.limit;
      }
      case "concurrency":
        return this.#used(atMs - policy.ttlMs + 1, atMs) + cost <= policy.limit;
      default:
        throw new Error(`no oracle for ${policy.stored}: it is not exact`);
    }
  }

  admit(cost: number, atMs: number): void {
    const policy = this.#policy;
    if (policy.stored === "token-bucket") {
      this.#tokens = this.#tokensAt(atMs) - BigInt(cost) * BigInt(policy.scaleMs);
      this.#filledAtMs = BigInt(atMs);
    } else if (policy.stored === "gcra") {
      this.#arrival = this.#arrivalAfter(cost, atMs);
    }
    this.#admitted.push({ atMs, cost });
  }

  /** The greatest cost that would pass, ignoring the minimum interval. */
  remaining(atMs: number): number {
    const policy = this.#policy;
    const capacity = "capacity" in policy ? policy.capacity : policy.limit;
    let fits = 0;
    const patient = new Oracle("minIntervalMs" in policy ? { ...policy, minIntervalMs: 0 } : policy);
    patient.#admitted = this.#admitted;
    patient.#tokens = this.#tokens;
    patient.#filledAtMs = this.#filledAtMs;
    patient.#arrival = this.#arrival;
    while (fits < capacity && patient.allows(fits + 1, atMs)) fits++;
    return fits;
  }

  #used(fromMs: number, toMs: number): number {
    let used = 0;
    for (const { atMs, cost } of this.#admitted) if (atMs >= fromMs && atMs <= toMs) used += cost;
    return used;
  }

  #tokensAt(atMs: number): bigint {
    const policy = this.#policy as Policy & { stored: "token-bucket" };
    const full = BigInt(policy.capacity) * BigInt(policy.scaleMs);
    const tokens = this.#tokens + (BigInt(atMs) - this.#filledAtMs) * BigInt(policy.amount);
    return tokens < full ? tokens : full;
  }

  #arrivalAfter(cost: number, atMs: number): bigint {
    const policy = this.#policy as Policy & { stored: "gcra" };
    const now = BigInt(atMs) * BigInt(policy.amount);
    return (this.#arrival > now ? this.#arrival : now) + BigInt(cost) * BigInt(policy.scaleMs);
  }
}
