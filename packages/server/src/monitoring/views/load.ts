/** Load shedding, adaptive limits, and requests waiting for a turn. */
import type { StatsPoint } from "./stats.js";
import type { Scope, Series, StatsSpan } from "./time.js";

/**
 * `GET /admin/v1/load?window=live|hour|day&rule=ID`: rules that shed load, adapt their limits, or make requests wait. At most 100 rules of
 * each kind, in rule order.
 */
export interface LoadView {
  readonly atMs: number;
  readonly window: StatsSpan;
  /** `instance`: series and current figures are those of the responding instance. */
  readonly scope: Scope;
  readonly stepMs: number;
  readonly instances: number;
  /** The steps of every series. */
  readonly steps: readonly Pick<StatsPoint, "atMs" | "coveredMs" | "scope">[];
  readonly shedding: readonly SheddingView[];
  readonly adaptive: readonly AdaptiveView[];
  readonly waiting: readonly WaitingView[];
  /** Keys with requests waiting now, in the service's processes; most requests first, at most 100. */
  readonly waitingKeys: readonly WaitingKeyView[];
  /** Whether there are further keys. */
  readonly moreKeys: boolean;
}

/** A load-shedding rule. Utilisation is 0 to 1, and above if more places are taken than the limit. */
export interface SheddingView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly signals: readonly string[];
  readonly isEstimated: boolean;
  /** Absent before the first request, or if no instance reports. */
  readonly now?: {
    /** The busiest instance's; an unknown signal is absent. */
    readonly utilisation: Readonly<Record<string, number>>;
    /** Places and requests in flight over all instances; absent without the signal `inflight`. */
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
  /** The utilisation from which it is shed. */
  readonly threshold: number;
  /** Sums over the window. */
  readonly passed: number;
  readonly shed: number;
  /** Per step; for rates divide by the steps' `coveredMs`. */
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
    /** Absent if unknown. */
    readonly utilisation?: number;
    /** The instance that adapts the limit; absent if none does (the store is down). */
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
  /** Absent if unknown: the limit returns to the rule's own. */
  readonly utilisation?: number;
  readonly instance: string;
  /** Applied to that instance only, while the store was down. */
  readonly alone: boolean;
}

/** A rule with `maxWait`. */
export interface WaitingView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  readonly maxWait: string;
  /** Requests waiting now in the service's processes. */
  readonly now: number;
  /** Turns booked in the window, and their mean wait. */
  readonly turns: number;
  readonly meanWaitMs?: number;
  /** Mean number of waiting requests, turns booked, and their mean wait, by step. */
  readonly waitingBy: Series;
  readonly turnsBy: Series;
  readonly waitMsBy: Series;
}

export interface WaitingKeyView {
  readonly rule: string;
  /** Absent if the values are so long that only their digest is stored. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly waiting: number;
  /** How long the first one has waited, and the time until the last turn. */
  readonly longestMs: number;
  readonly lastTurnMs: number;
}
