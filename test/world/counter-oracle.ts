/**
 * What a counter was charged, kept naively, charge by charge, and whether its limit held. Independent of the library's models: it
 * knows what a window is, and counts.
 * In: charges as the store made them, on a clock that never goes back. Out: the mistake, or undefined. Pure.
 */
import type { BucketPolicy, Policy } from "../../packages/sluice/src/algorithms/policy.js";

export interface ChargedUnits {
  /** On the store's clock, as if it had never been stepped back. */
  readonly atMs: number;
  /** As the store stamped it: a refund names it. */
  readonly stampMs: number;
  readonly entryId: string;
  readonly units: number;
  readonly policy: Policy;
}

export class CounterOracle {
  #charges: ChargedUnits[] = [];

  /** `judged`: a check, which may not pass the limit; else a charge in full, which only counts. `stepsMs`: when the clock was stepped. */
  charge(
    charge: ChargedUnits,
    { judged, stepsMs }: { judged: boolean; stepsMs: readonly number[] },
  ): string | undefined {
    this.#charges.push(charge);
    if (this.#charges.length > 64 && this.#charges.length % 64 === 0) this.#forget(charge);
    return judged ? this.#judge(charge, stepsMs) : undefined;
  }

  /**
   * A window forgets the charge, as if it had never been. A bucket gets its tokens back at the time of the refund: what it was refilled
   * by meanwhile stays, so a span may use so much more as was given back in it (docs/algorithms.md).
   */
  refund({ stampMs, entryId, units, atMs }: { stampMs: number; entryId: string; units: number; atMs: number }): void {
    const of = (name: string, fits: (charge: ChargedUnits) => boolean): number =>
      this.#charges.findIndex(
        (charge) => charge.stampMs === Math.floor(stampMs) && charge.entryId === name && fits(charge),
      );
    const exact = of(entryId, (charge) => charge.units === units);
    // Requests that the store decided as one are refunded one by one, by the names of their entries: n, n:2, n:3.
    const at = exact >= 0 ? exact : of(entryId.replace(/:\d+$/, ""), (charge) => charge.units >= units);
    if (at < 0) return;
    const charge = this.#charges[at]!;
    if (at !== exact && !("capacity" in charge.policy)) this.#charges[at] = { ...charge, units: charge.units - units };
    else if ("capacity" in charge.policy) this.#charges.push({ ...charge, atMs, units: -units, entryId: "" });
    else this.#charges.splice(at, 1);
  }

  /**
   * A reservation is settled at so many units. What goes back is taken from what was charged last: milder than any store. What was used
   * beyond it is a charge of its own.
   */
  giveBack(entryId: string, units: number, atMs: number): void {
    let left = units;
    for (let i = this.#charges.length - 1; i >= 0 && left > 0; i--) {
      const charge = this.#charges[i]!;
      if (charge.entryId !== entryId || charge.units <= 0) continue;
      const back = Math.min(left, charge.units);
      left -= back;
      if ("capacity" in charge.policy) this.#charges.push({ ...charge, atMs, units: -back, entryId: "" });
      else this.#charges[i] = { ...charge, units: charge.units - back };
    }
  }

  #judge({ atMs, units, policy, stampMs }: ChargedUnits, stepsMs: readonly number[]): string | undefined {
    const { limit } = policy;
    switch (policy.stored) {
      case "token-bucket":
      case "gcra":
        return this.#judgeBucket(policy, atMs);
      case "rolling-window":
      case "rolling-window-packed":
        return this.#judgeInterval(policy.minIntervalMs, atMs) ?? this.#judgeSpan(policy.windowMs, limit, atMs);
      case "fixed-window":
      case "sliding-counter": {
        if (stepsMs.length === 0) {
          const startMs = stampMs - (stampMs % policy.windowMs);
          const used = this.#charges.reduce((sum, charge) => sum + (charge.stampMs >= startMs ? charge.units : 0), 0);
          return used > limit ? `${used} of ${limit} in the window that began at ${startMs}` : undefined;
        }
        // A span lies across two windows of the clock, and each step of the clock may begin another.
        const steps = stepsMs.filter((stepMs) => stepMs > atMs - policy.windowMs).length;
        return this.#judgeSpan(policy.windowMs, (2 + steps) * limit, atMs);
      }
      case "concurrency":
        return units > limit ? `${units} places of ${limit} at once` : undefined;
    }
  }

  #judgeSpan(windowMs: number, most: number, atMs: number): string | undefined {
    let used = 0;
    for (let i = this.#charges.length - 1; i >= 0 && this.#charges[i]!.atMs > atMs - windowMs; i--) {
      used += this.#charges[i]!.units;
    }
    return used > most ? `${used} of ${most} in the ${windowMs} ms up to ${atMs}` : undefined;
  }

  #judgeInterval(minIntervalMs: number, atMs: number): string | undefined {
    const before = this.#charges.at(-2);
    if (minIntervalMs === 0 || before === undefined || atMs - before.atMs >= minIntervalMs) return undefined;
    return `two admissions ${atMs - before.atMs} ms apart, with a least interval of ${minIntervalMs} ms`;
  }

  /** The most that any span up to now has used beyond its refill. */
  #judgeBucket({ capacity, amount, scaleMs }: BucketPolicy, atMs: number): string | undefined {
    let deficit = 0;
    let lastMs = 0;
    for (const charge of this.#charges) {
      deficit = Math.max(0, Math.max(0, deficit - (charge.atMs - lastMs) * amount) + charge.units * scaleMs);
      lastMs = charge.atMs;
    }
    if (deficit <= capacity * scaleMs) return undefined;
    return `${deficit / scaleMs} tokens of ${capacity} out at ${atMs}`;
  }

  /** Charges that no window can hold any more. */
  #forget({ atMs, policy }: ChargedUnits): void {
    const keepMs = "windowMs" in policy ? 2 * policy.windowMs : "capacity" in policy ? fillMs(policy) : 0;
    this.#charges = this.#charges.filter((charge) => charge.atMs > atMs - keepMs);
  }
}

/** A bucket in debt takes longer than this to fill; a forgotten charge then only makes the oracle milder. */
function fillMs({ capacity, amount, scaleMs }: BucketPolicy): number {
  return 2 * Math.ceil((capacity * scaleMs) / amount);
}
