/** Load shedding, limits that move, and requests that wait for a turn. */
import type { StatsPoint } from "./stats.js";
import type { Scope, Series, StatsSpan } from "./time.js";

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
