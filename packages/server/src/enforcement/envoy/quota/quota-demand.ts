/**
 * How many requests an Envoy should be able to pass until its next report. Pure: time is an argument.
 * In: the rules' numbers, and what was reported. Out: requests.
 */
import { type Check, mostUnits, unitsPerMs } from "sluice/internal";

/** Envoy 1.40 reports every five seconds, whatever its configuration says. */
const REPORT_EVERY_MS = 5_000;
/** Demand moves between two reports. */
const HEADROOM = 1.25;
/** Of the rule's even share of a term, for an Envoy that passes little: its next requests must not find nothing. */
const LEAST_SHARE = 1 / 8;
/** The share of the last demand that counts as long as the present one is less: bursts come back. */
const MEMORY = 0.5;

export class QuotaDemand {
  #perMs: number | undefined;
  #sinceMonotonicMs: number | undefined;
  #intervalMs = REPORT_EVERY_MS;

  /** `asked`: requests that came since the last report, denied ones included. */
  report(asked: number, nowMonotonicMs: number): void {
    const sinceMonotonicMs = this.#sinceMonotonicMs;
    this.#sinceMonotonicMs = nowMonotonicMs;
    // The first report is sent with the first request: it tells nothing yet.
    if (sinceMonotonicMs === undefined) return;
    this.#intervalMs = Math.max(REPORT_EVERY_MS, nowMonotonicMs - sinceMonotonicMs);
    const elapsedMs = Math.max(1_000, nowMonotonicMs - sinceMonotonicMs);
    this.#perMs = Math.max(asked / elapsedMs, (this.#perMs ?? 0) * MEMORY);
  }

  /** At least one, at most what the tightest of the rules can ever grant. */
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
