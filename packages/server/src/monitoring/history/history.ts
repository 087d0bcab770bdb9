/**
 * The counts of all instances as time series: per second for two minutes, per minute for two hours, per quarter hour for eight days.
 * Two implementations, one meaning: in Redis if the counters are (so that every instance reads the same numbers), otherwise in this process
 * with a snapshot in the data folder (so that they survive a restart). Bounded: see each implementation.
 * Never on the request path; an unreachable history loses counts, never checks.
 */

/** `series`: `total` or a rule's id; then its counts. */
export interface SeriesCounts {
  readonly series: string;
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
}

/**
 * Requests for the series `total`, checks for a rule's. `latencyNN`: requests by latency bucket; `useNN`: enforced checks by the share of
 * the limit in use after them, in tenths (use00 = below 10 %, use09 = 90 % and more).
 * `seconds`, of `total`: covered seconds of the step, however many instances counted them. A step without them is unknown, not quiet.
 * The four from `bothAllowed` on belong to comparisons (`candidate-comparison.ts`); those from `turns` on to waiting and load: counts, and
 * sums of readings with the number of readings (`load/load-readings.ts`); those from `held` on are units of reservations, of rules with a
 * unit (`spent`), and of model calls.
 */
export type Counted =
  | "allowed"
  | "refused"
  | "shadowRefused"
  | "candidateAllowed"
  | "candidateRefused"
  | "degraded"
  | "storeErrors"
  | "unmatched"
  | "seconds"
  | "bothAllowed"
  | "bothRefused"
  | "onlyLiveRefused"
  | "onlyCandidateRefused"
  | "turns"
  | "waitMs"
  | "waiting"
  | "inFlightUse"
  | "inFlightUses"
  | "loopUse"
  | "loopUses"
  | "reportedUse"
  | "reportedUses"
  | "places"
  | "inFlight"
  | "placesSeen"
  | "limit"
  | "limits"
  | "limitUse"
  | "limitUses"
  | "held"
  | "settled"
  | "overrun"
  | "spent"
  | "calls"
  | "promptTokens"
  | "completionTokens"
  | "cachedTokens"
  | "microdollars"
  | `latency${number}`
  | `use${number}`;

export type Step = "second" | "minute" | "quarter";

/** Each step's length, and its retention. */
export const steps: Readonly<Record<Step, { readonly lengthMs: number; readonly keepMs: number }>> = {
  second: { lengthMs: 1_000, keepMs: 2 * 60_000 },
  minute: { lengthMs: 60_000, keepMs: 2 * 3_600_000 },
  quarter: { lengthMs: 15 * 60_000, keepMs: 8 * 24 * 3_600_000 },
};
export const stepNames = Object.keys(steps) as Step[];

/** Rules come and go over months, so each step is bounded: later series are counted together. */
export const MOST_SERIES = 1_000;
export const OTHER_SERIES = "(other)";
export const TOTAL_SERIES = "total";

/** A rule may be called "total" too; no rule id has a colon. */
export function seriesOfRule(rule: string): string {
  return rule === TOTAL_SERIES ? "rule:total" : rule;
}

/** Undefined for the total, which belongs to no rule. */
export function ruleOfSeries(series: string): string | undefined {
  return series === TOTAL_SERIES ? undefined : series === "rule:total" ? TOTAL_SERIES : series;
}

export function stepAt(step: Step, atMs: number): number {
  return atMs - (atMs % steps[step].lengthMs);
}

export interface Point {
  /** Start of the step. */
  readonly atMs: number;
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
}

export interface History {
  /** Writes lost since the start: an unreachable history never delays its writers. */
  readonly lost: number;
  /**
   * Adds to the second that contains `atMs`, and to its minute and quarter hour. Never rejects. `seconds`: how long was counted. Only the
   * first instance to report a second adds them, so that coverage does not grow with the fleet.
   */
  add(atMs: number, counts: readonly SeriesCounts[], seconds?: number): Promise<void>;
  /** Steps with counts by series, oldest first, from `fromMs` (inclusive) to `toMs` (exclusive). Rejects if the history is unreachable. */
  read(step: Step, range: { fromMs: number; toMs: number }): Promise<ReadonlyMap<string, readonly Point[]>>;
  close(): Promise<void>;
}
