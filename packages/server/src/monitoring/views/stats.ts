/** Requests and checks: of a window or a range, and of the second that just ended. */
import type { Scope, StatsSpan } from "./time.js";

/** The store does not answer this instance. */
export interface OutageView {
  readonly sinceMs: number;
  /** A few words for people: "Redis does not accept the password". */
  readonly cause: string;
}

/** One step of a series. Checks for a rule, requests in total. */
export interface StatsPoint {
  readonly atMs: number;
  /** How much of the step was counted: less than its length while it lasts, or where the history was away for a part. 0: nothing is known of it, and its counts mean nothing. */
  readonly coveredMs: number;
  /** `instance`: the history has nothing of this step, and this instance tells what it counted alone. */
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
  /** Checks by the share of the limit that was used after them, in ten steps from "below 10 %" to "90 % and more". */
  readonly utilisation: readonly number[];
  /** Absent unless one rule was asked for (`?rule=`). */
  readonly points?: readonly StatsPoint[];
  /** Absent unless the rule has a candidate. */
  readonly comparison?: ComparisonView;
}

/** The candidate beside the live rule, on the same requests: those since both have the form that they have now. */
export interface ComparisonView {
  /** The first step with requests; absent where there were none. */
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
    /** Requests that met no rule, and passed for that. */
    readonly unmatched: number;
    readonly latency: Latency;
    /** One for each step of the window, also where nothing came. */
    readonly points: readonly (StatsPoint & Latency)[];
  };
  /** Rules with traffic in the window, most checks first, at most 1000. */
  readonly rules: readonly RuleStats[];
}

/** One event `live` of `GET /admin/v1/stats/stream` each second: the second that ended two seconds before, when all have reported. */
export interface LiveView {
  readonly atMs: number;
  readonly scope: Scope;
  /** With the scope `instance`: this one. */
  readonly instances: number;
  readonly rulesVersion: number;
  readonly allowedPerSecond: number;
  readonly refusedPerSecond: number;
  readonly shadowRefusedPerSecond: number;
  readonly degradedPerSecond: number;
  readonly unmatchedPerSecond: number;
  readonly latency: Latency;
  /** Share of time in which the busiest event loop of the instances worked. */
  readonly eventLoopUtilisation: number;
  readonly store: {
    readonly kind: string;
    /** Whether it answers all instances. */
    readonly state: "up" | "degraded";
    /** How many it does not answer. */
    readonly degradedInstances: number;
    /** Present where it does not answer the instance that tells this. */
    readonly outage?: OutageView;
  };
  /** The busiest rules of that second, at most 20. */
  readonly rules: readonly { readonly rule: string; readonly allowed: number; readonly refused: number }[];
  readonly alertsFiring: number;
}
