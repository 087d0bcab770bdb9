/** Requests and checks: of a window or range, and of the latest complete second. */
import type { Scope, StatsSpan } from "./time.js";

/** The store does not answer this instance. */
export interface OutageView {
  readonly sinceMs: number;
  /** A short explanation for people: "Redis does not accept the password". */
  readonly cause: string;
  /** The store answers most calls, or answered the last probe: some calls were late or failed, and failure policies answered those. */
  readonly partial: boolean;
}

/** One step of a series. Checks for a rule, requests in total. */
export interface StatsPoint {
  readonly atMs: number;
  /**
   * Coverage of the step: less than its length while it is in progress, or if the history was partly unavailable. 0: nothing is known, and
   * its counts mean nothing.
   */
  readonly coveredMs: number;
  /** `instance`: the history lacks this step, so these are this instance's own counts. */
  readonly scope: Scope;
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  readonly candidateAllowed: number;
  readonly candidateRefused: number;
  /** Answered by a failure policy. */
  readonly degraded: number;
}

export interface Latency {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

export interface RuleStats {
  readonly rule: string;
  /** Sums over the window. */
  readonly allowed: number;
  readonly refused: number;
  readonly shadowRefused: number;
  readonly candidateAllowed: number;
  readonly candidateRefused: number;
  /** refused / (allowed + refused); 0 without traffic. */
  readonly violationRate: number;
  /** Checks by the share of the limit in use after them, in ten buckets from "below 10 %" to "90 % and more". */
  readonly utilisation: readonly number[];
  /** Only for a single rule (`?rule=`). */
  readonly points?: readonly StatsPoint[];
  /** Absent unless the rule has a candidate. */
  readonly comparison?: ComparisonView;
}

/** The candidate compared with the live rule on the same requests, since both have their current form. */
export interface ComparisonView {
  /** The first step with requests; absent if there were none. */
  readonly sinceMs?: number;
  readonly bothAllowed: number;
  readonly bothRefused: number;
  readonly onlyLiveRefused: number;
  readonly onlyCandidateRefused: number;
}

/** `GET /admin/v1/stats?window=live|hour|day&rule=ID`, or `?from=TIME&to=TIME&rule=ID` */
export interface StatsView {
  readonly atMs: number;
  readonly window: StatsSpan;
  readonly scope: Scope;
  readonly stepMs: number;
  /** Instances that reported in the last ten seconds. */
  readonly instances: number;
  readonly rulesVersion: number;
  readonly total: {
    readonly allowed: number;
    readonly refused: number;
    readonly shadowRefused: number;
    readonly degraded: number;
    /** Requests that matched no rule, and passed for that reason. */
    readonly unmatched: number;
    readonly latency: Latency;
    /** One per step of the window, even without traffic. */
    readonly points: readonly (StatsPoint & Latency)[];
  };
  /** Rules with traffic in the window, most checks first, at most 1000. */
  readonly rules: readonly RuleStats[];
  /** False if more rules had traffic: some are counted together, and a rule that is not listed may have had some. */
  readonly complete: boolean;
}

/**
 * The event `live` of `GET /admin/v1/stats/stream`, once a second: the second that ended two seconds ago, when all instances have reported.
 */
export interface LiveView {
  readonly atMs: number;
  readonly scope: Scope;
  /** With scope `instance`: 1, the responding one. */
  readonly instances: number;
  readonly rulesVersion: number;
  readonly allowedPerSecond: number;
  readonly refusedPerSecond: number;
  readonly shadowRefusedPerSecond: number;
  readonly degradedPerSecond: number;
  readonly unmatchedPerSecond: number;
  readonly latency: Latency;
  /** The busiest event loop's utilisation over all instances. */
  readonly eventLoopUtilisation: number;
  readonly store: {
    readonly kind: string;
    /** Whether it answers all instances. */
    readonly state: "up" | "degraded";
    /** The number of instances that it does not answer. */
    readonly degradedInstances: number;
    /** Set if it does not answer the responding instance. */
    readonly outage?: OutageView;
  };
  /** The busiest rules of that second, at most 20. */
  readonly rules: readonly { readonly rule: string; readonly allowed: number; readonly refused: number }[];
  readonly alertsFiring: number;
}
