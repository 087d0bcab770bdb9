/**
 * The expected counts of a series per minute, from robust statistics: the usual shape of the day times the current level.
 *
 *   shape   per quarter hour the median of the earlier days (one bad day does not move it), and as a second candidate the same weekday a
 *           week ago; interpolated linearly between the middles of quarter hours
 *   level   how the last hour compares with that shape, as the median of six ten-minute blocks: follows a quiet Sunday, or slow growth
 *   spread  how far that hour's minutes were from their expectation, by the median absolute deviation; at least a Poisson's
 *
 * Warm-up: with fewer than two earlier days the last hour alone is the baseline, and detectors use higher thresholds. Pure.
 */
import {
  DAY_MS,
  type EarlierDay,
  MINUTE_MS,
  MINUTES,
  median,
  QUARTER_MS,
  type SeriesWindow,
  SLOTS,
} from "./series-window.js";

/** The most recent minutes are the ones under evaluation, so they are excluded from the baseline. */
export const JUDGED = 6;
const COMPARED = MINUTES - JUDGED;
export const BLOCK = 10;
/** A level further off than this is an anomaly, not a level. */
const LOWEST_LEVEL = 0.5;
const HIGHEST_LEVEL = 3;
const DAYS_FOR_SEASON = 2;
export const MINUTES_FOR_RECENT = 35;

export interface Expected {
  /** Per minute, at the end of the window: the reference for a surplus, and for a lack. */
  readonly high: number;
  readonly low: number;
  /** Per minute. */
  readonly spread: number;
  readonly seasonal: boolean;
}

/** Undefined while there is too little history. */
export function expectedOf(window: SeriesWindow): Expected | undefined {
  if (window.knownMinutes < MINUTES_FOR_RECENT) return undefined;
  const days = window.season.filter(
    ({ daysAgo }) => window.knownMinutes * MINUTE_MS >= daysAgo * DAY_MS + 2 * QUARTER_MS,
  );
  return days.length < DAYS_FOR_SEASON ? recentOnly(window) : seasonal(window, days);
}

function recentOnly({ checks, knownMinutes, gaps }: SeriesWindow): Expected {
  const from = Math.max(0, MINUTES - Math.floor(knownMinutes));
  const known = Array.from(checks.subarray(from, COMPARED)).filter((_, i) => gaps?.has(from + i) !== true);
  const middle = median(known);
  return { high: middle, low: middle, spread: spreadOf(known, middle), seasonal: false };
}

function seasonal(window: SeriesWindow, days: readonly EarlierDay[]): Expected {
  const shapes = [medianDay(days)];
  const lastWeek = days.find(({ daysAgo }) => daysAgo === 7);
  if (lastWeek !== undefined) shapes.push(lastWeek.checks);
  const fits = shapes.map((shape) => fit(window, shape));
  const spreads = fits.map(({ spread }) => spread);
  return {
    high: Math.max(...fits.map(({ usual, level }) => usual * clamp(level, LOWEST_LEVEL, HIGHEST_LEVEL))),
    // A return to the usual level after a rush is no lack.
    low: Math.min(...fits.map(({ usual, level }) => usual * clamp(level, 1 / HIGHEST_LEVEL, 1))),
    spread: Math.max(...spreads),
    seasonal: true,
  };
}

function medianDay(days: readonly EarlierDay[]): Float64Array {
  return Float64Array.from({ length: SLOTS }, (_, slot) => median(days.map(({ checks }) => checks[slot]!)));
}

function fit({ checks, endMs, seasonFromMs }: SeriesWindow, shape: Float64Array) {
  const usual = Array.from({ length: MINUTES }, (_, i) =>
    perMinute(shape, endMs - (MINUTES - i - 0.5) * MINUTE_MS - seasonFromMs),
  );
  const ratios: number[] = [];
  for (let from = 0; from < COMPARED; from += BLOCK) {
    let seen = 0;
    let expected = 0;
    for (let i = from; i < from + BLOCK; i++) {
      seen += checks[i]!;
      expected += usual[i]!;
    }
    if (expected > 0) ratios.push(seen / expected);
  }
  const level = ratios.length === 0 ? 1 : median(ratios);
  const residuals = Array.from({ length: COMPARED }, (_, i) => checks[i]! - usual[i]! * level);
  const now = usual.slice(-JUDGED / 2).reduce((sum, each) => sum + each, 0) / (JUDGED / 2);
  return { usual: now, level, spread: spreadOf(residuals, 0) };
}

/** Interpolates between the middles of two quarter hours. */
function perMinute(shape: Float64Array, sinceStartMs: number): number {
  const at = sinceStartMs / QUARTER_MS - 0.5;
  const left = Math.min(SLOTS - 2, Math.max(0, Math.floor(at)));
  const share = Math.min(1, Math.max(0, at - left));
  return (shape[left]! * (1 - share) + shape[left + 1]! * share) / 15;
}

/** Scaled median absolute deviation: equals the standard deviation for normally distributed values. */
export function spreadOf(values: readonly number[], middle: number): number {
  return 1.4826 * median(values.map((value) => Math.abs(value - middle)));
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
