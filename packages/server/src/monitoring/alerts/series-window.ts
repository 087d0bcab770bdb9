/**
 * A series as the detectors see it: its last whole minutes, and the same quarter hours on the seven days before. Pure.
 * Minutes without counts are zeros, and in `gaps` if nobody counted; `knownMinutes` is the age of the history.
 */
export const MINUTE_MS = 60_000;
export const QUARTER_MS = 15 * MINUTE_MS;
export const DAY_MS = 24 * 60 * MINUTE_MS;
/** An hour for comparison, plus the minutes under evaluation. */
export const MINUTES = 66;
/** Enough quarter hours to cover those minutes. */
export const SLOTS = 8;
export const DAYS = 7;

export interface EarlierDay {
  readonly daysAgo: number;
  /** By quarter hour, starting at `seasonFromMs` of that day. */
  readonly checks: Float64Array;
  readonly refused: Float64Array;
}

export interface SeriesWindow {
  /** End of the last whole minute. */
  readonly endMs: number;
  /** Age of the history. */
  readonly knownMinutes: number;
  /** Per minute, oldest first. */
  readonly checks: Float64Array;
  readonly refused: Float64Array;
  /** Indexes of minutes that were not counted, or in part only: an outage of the history, or of the service. Absent: none. */
  readonly gaps?: ReadonlySet<number>;
  /** Today's time of the season's first quarter hour. */
  readonly seasonFromMs: number;
  readonly season: readonly EarlierDay[];
}

/** The season start for a window that ends at `endMs`. Changes only every quarter hour. */
export function seasonStart(endMs: number): number {
  const firstMs = endMs - MINUTES * MINUTE_MS;
  return firstMs - (firstMs % QUARTER_MS) - QUARTER_MS;
}

export function median(values: readonly number[]): number {
  if (values.length === 0) return 0;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function sumOf(values: Float64Array, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += values[i]!;
  return sum;
}
