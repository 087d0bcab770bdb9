/**
 * The shapes of the admin API's figures, which the dashboard and `sluice top` show.
 * Rates and counts are of all instances that share the history. Times are the service's, in milliseconds since the epoch.
 */

export type StatsWindow = "hour" | "day";
/** `live`: the last two minutes, by the second. `range`: from one instant to another. */
export type StatsSpan = StatsWindow | "live" | "range";

/** A window that ends now, or a range of the eight days that are kept. */
export type AskedTime =
  | { readonly window: Exclude<StatsSpan, "range"> }
  | { readonly window: "range"; readonly fromMs: number; readonly toMs: number };

/** `fleet`: of all instances that share the history. `instance`: the history cannot be read; what the instance that answers has counted itself. */
export type Scope = "fleet" | "instance";

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

/** One value for each step of a window; null where nothing is known. */
export type Series = readonly (number | null)[];

/**
 * `GET /admin/v1/load?window=live|hour|day&rule=ID`: rules that shed load, whose limits move, or under which requests wait.
 * Of each kind at most 100 rules, in the rules' order.
 */
export interface LoadView {
  readonly atMs: number;
  readonly window: StatsSpan;
  /** `instance`: series and present figures are those of the instance that answers. */
  readonly scope: Scope;
  readonly stepMs: number;
  readonly instances: number;
  /** The steps of every series. */
  readonly steps: readonly Pick<StatsPoint, "atMs" | "coveredMs" | "scope">[];
  readonly shedding: readonly SheddingView[];
  readonly adaptive: readonly AdaptiveView[];
  readonly waiting: readonly WaitingView[];
  /** Keys whose requests wait now, in the service's processes; the most requests first, at most 100. */
  readonly waitingKeys: readonly WaitingKeyView[];
  /** Whether there are more of them. */
  readonly moreKeys: boolean;
}

/** A load-shedding rule. Utilisation is 0 to 1, and above where places are taken beyond the limit. */
export interface SheddingView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly signals: readonly string[];
  readonly isEstimated: boolean;
  /** Absent before the first request, or where no instance reports. */
  readonly now?: {
    /** Of the busiest instance; a signal that is not known is absent. */
    readonly utilisation: Readonly<Record<string, number>>;
    /** Places and requests in flight of all instances; absent without the signal `inflight`. */
    readonly places?: number;
    readonly inFlight?: number;
  };
  /** Means over the instances. */
  readonly utilisation: Readonly<Record<string, Series>>;
  readonly places?: Series;
  readonly inFlight?: Series;
  readonly classes: readonly SheddingClassView[];
}

export interface SheddingClassView {
  readonly name: string;
  /** The utilisation at which it is shed. */
  readonly threshold: number;
  /** Sums over the window. */
  readonly passed: number;
  readonly shed: number;
  /** By step; rates need the steps' `coveredMs`. */
  readonly passedBy: Series;
  readonly shedBy: Series;
}

/** A rule with `adapt`. */
export interface AdaptiveView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly unit?: string;
  readonly signals: readonly string[];
  readonly configured: number;
  readonly min: number;
  readonly max: number;
  readonly target: number;
  readonly now?: {
    readonly limit: number;
    /** Absent where none is known. */
    readonly utilisation?: number;
    /** The instance that moves the limit; absent where none does (the store is away). */
    readonly leader?: string;
  };
  readonly limit: Series;
  readonly utilisation: Series;
  /** Newest first, at most 50. */
  readonly moves: readonly LimitMoveView[];
}

export interface LimitMoveView {
  readonly atMs: number;
  readonly from: number;
  readonly to: number;
  /** Absent where none was known: the limit goes back to the rule's own. */
  readonly utilisation?: number;
  readonly instance: string;
  /** Moved for that instance alone, while the store was away. */
  readonly alone: boolean;
}

/** A rule with `maxWait`. */
export interface WaitingView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly maxWait: string;
  /** Requests that wait now in the service's processes. */
  readonly now: number;
  /** Turns that were booked in the window, and their mean wait. */
  readonly turns: number;
  readonly meanWaitMs?: number;
  /** Mean number of waiting requests, turns booked, and their mean wait, by step. */
  readonly waitingBy: Series;
  readonly turnsBy: Series;
  readonly waitMsBy: Series;
}

export interface WaitingKeyView {
  readonly rule: string;
  /** Absent where they are so long that only their digest is kept. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly waiting: number;
  /** How long the first of them has waited, and until the last of their turns comes. */
  readonly longestMs: number;
  readonly lastTurnMs: number;
}

/** `GET /admin/v1/spend?window=hour|day&rule=ID`: what rules with a `unit` counted, and what calls to models used. */
export interface SpendView {
  readonly atMs: number;
  readonly window: StatsSpan;
  readonly scope: Scope;
  readonly stepMs: number;
  /** The steps of every series. */
  readonly steps: readonly Pick<StatsPoint, "atMs" | "coveredMs" | "scope">[];
  /** Rules with a unit or an estimate, at most 100. */
  readonly rules: readonly SpendRuleView[];
  /** The most tokens first; empty without the LLM gateway. */
  readonly models: readonly ModelView[];
  /** The price table, if the service has one. */
  readonly prices?: readonly ModelPrice[];
}

export interface SpendRuleView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  /** `requests` where the rule names none. */
  readonly unit: string;
  /** Units that were spent in the window: charged at once, or settled; absent for a rule without a unit. */
  readonly spent?: number;
  readonly spentBy?: Series;
  /** Of a rule with `estimate`. */
  readonly estimate?: EstimateView;
}

/** Units in the window, by step, and what was learned. */
export interface EstimateView {
  readonly held: number;
  readonly settled: number;
  /** Settled beyond what was held. */
  readonly overrun: number;
  readonly heldBy: Series;
  readonly settledBy: Series;
  readonly overrunBy: Series;
  /** Of one rule alone (`?rule=`), where the store answers; the rule's own keys first, then those of overrides. */
  readonly learned?: readonly LearnedView[];
}

export interface LearnedView {
  /** "" for the rule's keys; else a digest of what the override matches. */
  readonly keyClass: string;
  /** How many settled costs it rests on. */
  readonly requests: number;
  readonly quantile: number;
  readonly default: number;
  /** Absent while too little is known: `default` is held then. */
  readonly learned?: number;
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

export interface ModelView {
  /** As the price table lists it, else as calls named it; `(other)` for the rest. */
  readonly model: string;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  /** Absent without a price table. */
  readonly microdollars?: number;
}

/** Dollars per million tokens. */
export interface ModelPrice {
  readonly model: string;
  readonly prompt: number;
  readonly completion: number;
  readonly cachedPrompt: number;
}

/** `GET /admin/v1/keys/blocked?rule=ID` */
export interface BlockedKeysView {
  readonly atMs: number;
  /** The longest first, at most 1000. */
  readonly keys: readonly BlockedKeyView[];
  /** False where there may be more: too many keys to look at all. */
  readonly complete: boolean;
}

export interface BlockedKeyView {
  readonly rule: string;
  /** Absent where they are so long that only their digest is kept. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly leftMs: number;
}

/** `POST /admin/v1/keys/history` `{attributes, from?, to?}`: one key's traffic by rule, and its last refusals. */
export interface KeyView {
  readonly atMs: number;
  readonly scope: Scope;
  readonly periodMs: number;
  /** Quarter hours of the last hour, else hours. `isKnown`: an instance has written its table of that time. */
  readonly periods: readonly { readonly atMs: number; readonly isKnown: boolean }[];
  /** From the tables of top keys: 0 where the key came too seldom to be listed. */
  readonly rules: readonly KeyRuleTraffic[];
  /** A sample, newest first, at most 50; kept for six hours. */
  readonly refusals: readonly KeyRefusal[];
  /** `hidden`: names of attributes without values. */
  readonly refusalValues: "shown" | "hidden" | "off";
}

/** One count for each period. */
export interface KeyRuleTraffic {
  readonly rule: string;
  readonly checks: readonly number[];
  readonly refused: readonly number[];
}

export interface KeyRefusal {
  readonly atMs: number;
  readonly rule: string;
  readonly reason: string;
  readonly attributes: Readonly<Record<string, string>>;
}

/** `GET /admin/v1/keys/top?window=hour|day&by=traffic|refusals|spend&unit=UNIT&rule=ID&search=TEXT&limit=N` */
export interface TopKeysView {
  readonly atMs: number;
  readonly window: StatsWindow;
  readonly by: "traffic" | "refusals" | "spend";
  /** With `spend`: of what, and of what else there is spending. */
  readonly unit?: string;
  readonly units?: readonly string[];
  /** `instance`: of the quarter hour (window `hour`) or the hour (window `day`) that lasts. */
  readonly scope: Scope;
  /** No count is more than this above the truth, and none is below it. */
  readonly maxError: number;
  readonly keys: readonly TopKey[];
  /** Whether there are more after these (`offset`). */
  readonly more: boolean;
}

export interface TopKey {
  readonly rule: string;
  /** The attributes that form the key; empty for a rule that counts everything together. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly count: number;
  readonly refused: number;
  /** With `group=client`: the rules that counted this key, and their share of it; `rule` is the first of them. */
  readonly rules?: readonly { readonly rule: string; readonly count: number; readonly refused: number }[];
  /** Highest share of the limit that was in use, 0 to 1. */
  readonly peakUtilisation: number;
  /** With `spend`: units; `count` and `refused` are then 0 for keys with little traffic. */
  readonly spent?: number;
}

/** `GET /admin/v1/store` */
export interface StoreView {
  readonly atMs: number;
  readonly kind: string;
  readonly state: "up" | "degraded";
  /** Present while it is degraded. */
  readonly outage?: OutageView;
  /** Breaker, calls, errors and latency as this instance sees them. */
  readonly calls: {
    readonly total: number;
    readonly errors: number;
    readonly latency: Latency;
    readonly breaker: "closed" | "open" | "half-open";
  };
  /** Counters in this process; the memory store only. */
  readonly keysInMemory?: number;
  /** One for each Redis node; none with the memory store. */
  readonly nodes: readonly StoreNode[];
  readonly memory: {
    /** Bytes that the counters use, sampled; absent where it cannot be known. */
    readonly measuredBytes?: number;
    /** If every key that is there were at its limit, from the memory model; absent where the keys cannot be known. */
    readonly predictedFullBytes?: number;
    /** Keys that were looked at, and keys there are: equal if all were looked at. */
    readonly sample?: { readonly keys: number; readonly ofKeys: number };
    readonly byRule: readonly {
      readonly rule: string;
      readonly keys: number;
      readonly measuredBytes?: number;
      readonly predictedFullBytes: number;
    }[];
  };
}

export interface StoreNode {
  readonly address: string;
  readonly role: "leader" | "replica";
  readonly state: "up" | "down";
  readonly version?: string;
  readonly leaderAddress?: string;
  /** Spelled ranges, "0-5460"; a cluster's leaders only. */
  readonly slots?: readonly string[];
  readonly usedBytes?: number;
  readonly maxBytes?: number;
  readonly maxMemoryPolicy?: string;
  readonly opsPerSecond?: number;
  readonly keys?: number;
  readonly evictedKeys?: number;
  readonly connectedClients?: number;
  readonly replicationLagBytes?: number;
  readonly pingMs?: number;
  /** Newest first, at most ten. */
  readonly slow?: readonly { readonly atMs: number; readonly tookMs: number; readonly command: string }[];
  /** The reply of `LATENCY LATEST`; empty unless the server watches latencies (`latency-monitor-threshold`). */
  readonly latencyEvents?: readonly {
    readonly event: string;
    readonly atMs: number;
    readonly lastMs: number;
    readonly worstMs: number;
  }[];
}

/** `GET /admin/v1/regions` */
export interface RegionsView {
  readonly atMs: number;
  /** `all`: from the global store. `region`: that does not answer, and only this region's instances are known. `instance`: nor does the region's store. */
  readonly scope: "all" | "region" | "instance";
  /** The region of the instance that answers; absent without --global-store. */
  readonly own?: string;
  /** By name; empty without --global-store. */
  readonly regions: readonly RegionView[];
}

export interface RegionView {
  readonly region: string;
  /** `cut-off`: none of its instances reaches the global store. `silent`: heard of within a day, but not in the last ten seconds. */
  readonly state: "up" | "cut-off" | "silent";
  /** Present unless it is up: since when, or when it was last heard of, by its own clock. */
  readonly sinceMs?: number;
  readonly instances: number;
  readonly cutOffInstances: number;
  /** Under all rules. */
  readonly requestsPerSecond: number;
  readonly refusedPerSecond: number;
  /** Under rules with scope global; of these, those that waited for units, and those that a failure policy answered. */
  readonly globalPerSecond: number;
  readonly waitedPerSecond: number;
  readonly byPolicyPerSecond: number;
  /** From the global store. */
  readonly fetchesPerSecond: number;
  /** Units of global counters in the region's pools, as they were filled, and how many pools. */
  readonly units: number;
  readonly pools: number;
  /** To the global store, the median of its instances; absent before it was first reached. */
  readonly roundTripMs?: number;
}

export type AlertKind =
  | "unusual-rate"
  | "refusal-share"
  | "new-heavy-key"
  | "store-degraded"
  | "store-memory"
  | "propagation-stuck"
  | "threshold";

export interface AlertView {
  readonly id: string;
  readonly kind: AlertKind;
  /** Absent where the alert is about all of them, or the store. */
  readonly rule?: string;
  readonly state: "firing" | "resolved";
  readonly severity: "warning" | "critical";
  /** One sentence with the figures that led to it. */
  readonly summary: string;
  readonly startedAtMs: number;
  readonly endedAtMs?: number;
  /** The observed and the expected figure. */
  readonly value?: number;
  readonly expected?: number;
  /** Of `threshold`: the condition of the alert policy. */
  readonly condition?: string;
  readonly acknowledged?: { readonly by: string; readonly atMs: number; readonly note?: string };
  /** Of a firing alert: held back until then. */
  readonly silencedUntilMs?: number;
}

/** `GET /admin/v1/alerts`: firing ones first, then newest first; resolved ones are kept for eight days, at most 500. */
export interface AlertsView {
  readonly atMs: number;
  /** `instance`: only what this instance has seen itself; those that are kept in the history cannot be read. */
  readonly scope: Scope;
  readonly alerts: readonly AlertView[];
  /** Where alerts are sent to, without secrets, and how that went. */
  readonly webhooks: readonly {
    readonly url: string;
    readonly format: "json" | "slack";
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
  /** Those of the alert policy. */
  readonly receivers: readonly {
    readonly id: string;
    readonly type: string;
    readonly lastSentAtMs?: number;
    readonly lastError?: string;
  }[];
}

/** `GET /admin/v1/timeline?from=TIME&to=TIME&rule=ID`: what happened in a range, for the markers of charts. */
export interface TimelineView {
  /** Oldest first, at most 200: the newest of more. */
  readonly events: readonly TimelineEvent[];
  /** False where there may be more than are listed. */
  readonly complete: boolean;
}

export type TimelineEvent =
  | {
      readonly kind: "rules" | "promotion" | "rollback";
      readonly atMs: number;
      readonly version: number;
      readonly author: string;
      /** The reason that was given, else what changed. */
      readonly text: string;
    }
  | { readonly kind: "alert"; readonly atMs: number; readonly alert: string; readonly text: string };

/** `GET /admin/v1/session`: who is signed in. */
export interface SessionView {
  readonly name: string;
  readonly role: "viewer" | "editor" | "admin";
}
