/**
 * The sums of all instances' counts, kept as time series: seconds for two minutes, minutes for two hours, quarter hours for eight days.
 * Two places, one meaning: Redis where the counters live in Redis (so that every instance reads the same numbers), else this
 * process with a snapshot in the data folder (so that a restart keeps them). Bounded: see each implementation.
 * Nothing on the path of a request waits for it; a history that cannot be reached loses counts, never checks.
 */

/** `total` or a rule's id; then what was counted of it. */
export interface SeriesCounts {
  readonly series: string;
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
}

/**
 * Requests for the series `total`, checks for a rule's. `latencyNN`: requests by latency bucket; `useNN`: enforced checks by the share
 * of the limit that was used after them, in tenths (use00 = below 10 %, use09 = 90 % and more).
 * `seconds`, of `total`: seconds of the step that were counted, however many instances counted them. A step without them is unknown, not quiet.
 * The four from `bothAllowed` on are of comparisons (`candidate-comparison.ts`), those from `turns` on of waiting and load: counts, and sums
 * of readings beside the number of readings (`load/load-readings.ts`); those from `held` on are units of reservations, of rules with a unit
 * (`spent`), and of calls to models.
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

/** How long a step is, and how long it is kept. */
export const steps: Readonly<Record<Step, { readonly lengthMs: number; readonly keepMs: number }>> = {
  second: { lengthMs: 1_000, keepMs: 2 * 60_000 },
  minute: { lengthMs: 60_000, keepMs: 2 * 3_600_000 },
  quarter: { lengthMs: 15 * 60_000, keepMs: 8 * 24 * 3_600_000 },
};
export const stepNames = Object.keys(steps) as Step[];

/** Rules come and go over months; what is kept must stay small. In one step, later ones are counted together. */
export const MOST_SERIES = 1_000;
export const OTHER_SERIES = "(other)";
export const TOTAL_SERIES = "total";

/** A rule may be called "total" too; no rule has a colon in its id. */
export function seriesOfRule(rule: string): string {
  return rule === TOTAL_SERIES ? "rule:total" : rule;
}

/** Undefined for the total, which is no rule's. */
export function ruleOfSeries(series: string): string | undefined {
  return series === TOTAL_SERIES ? undefined : series === "rule:total" ? TOTAL_SERIES : series;
}

export function stepAt(step: Step, atMs: number): number {
  return atMs - (atMs % steps[step].lengthMs);
}

export interface Point {
  /** When the step began. */
  readonly atMs: number;
  readonly counts: Readonly<Partial<Record<Counted, number>>>;
}

export interface History {
  /** Writes that were lost since the start: an unreachable history never delays its writers. */
  readonly lost: number;
  /**
   * Adds to the second that `atMs` lies in, and to its minute and quarter hour. Never rejects.
   * `seconds`: how long was counted. Only the first to report a second has it added, so that it does not grow with the fleet.
   */
  add(atMs: number, counts: readonly SeriesCounts[], seconds?: number): Promise<void>;
  /** Rejects where the history cannot be reached. Steps with counts, oldest first, from `fromMs` (inclusive) to `toMs` (exclusive), by series. */
  read(step: Step, range: { fromMs: number; toMs: number }): Promise<ReadonlyMap<string, readonly Point[]>>;
  close(): Promise<void>;
}
