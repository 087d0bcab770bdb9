/**
 * Estimates how many requests an Envoy will pass until its next report. Pure: time is an argument.
 * In: the rules' numbers, and the reports. Out: requests.
 */
import { type Check, mostUnits, unitsPerMs } from "sluice/internal";

/** Envoy 1.40 reports every five seconds, regardless of its configuration. */
const REPORT_EVERY_MS = 5_000;
/** Demand may grow between two reports. */
const HEADROOM = 1.25;
/** Minimum share of the rule's even rate for an Envoy with little traffic: its next requests must find some units. */
const LEAST_SHARE = 1 / 8;
/** How much of the last demand still counts when the current one is lower: bursts come back. */
const MEMORY = 0.5;

export class QuotaDemand {
  #perMs: number | undefined;
  #sinceMonotonicMs: number | undefined;
  #intervalMs = REPORT_EVERY_MS;

  /** `asked`: requests since the last report, including denied ones. */
  report(asked: number, nowMonotonicMs: number): void {
    const sinceMonotonicMs = this.#sinceMonotonicMs;
    this.#sinceMonotonicMs = nowMonotonicMs;
    // Envoy sends the first report with the first request, so it says nothing about demand yet.
    if (sinceMonotonicMs === undefined) return;
    this.#intervalMs = Math.max(REPORT_EVERY_MS, nowMonotonicMs - sinceMonotonicMs);
    const elapsedMs = Math.max(1_000, nowMonotonicMs - sinceMonotonicMs);
    this.#perMs = Math.max(asked / elapsedMs, (this.#perMs ?? 0) * MEMORY);
  }

  /** At least one, at most what the tightest rule can grant. */
  wanted(checks: readonly Check[]): number {
    let even = Number.POSITIVE_INFINITY;
    let most = Number.POSITIVE_INFINITY;
    for (const check of checks) {
      even = Math.min(even, (unitsPerMs(check) * check.plan.prefetchMs) / check.cost);
      most = Math.min(most, Math.floor(mostUnits(check) / check.cost));
    }
    const wanted = this.#perMs === undefined ? even : this.#perMs * this.#intervalMs * HEADROOM + 1;
    return Math.max(1, Math.min(most, Math.ceil(Math.max(wanted, even * LEAST_SHARE))));
  }
}
