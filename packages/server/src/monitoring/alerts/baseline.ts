/**
 * The expected counts of a series, minute by minute, from robust statistics: the usual shape of the day times the present level.
 *
 *   shape   for each quarter hour the median of the earlier days (one bad day does not move it), and beside it the same weekday a week
 *           ago; drawn as a line from one quarter's middle to the next
 *   level   how the last hour compared with that shape, as the median of six blocks of ten minutes: a quiet Sunday, slow growth
 *   spread  how far the minutes of that hour lay from what was expected of them, by the median deviation; at least a Poisson's
 *
 * Warm-up: with fewer than two earlier days the last hour alone is the baseline, and detectors ask for more. Pure.
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

/** The last minutes are those that are judged; they must not judge themselves. */
export const JUDGED = 6;
const COMPARED = MINUTES - JUDGED;
export const BLOCK = 10;
/** A level further off than this is news, not a level. */
const LOWEST_LEVEL = 0.5;
const HIGHEST_LEVEL = 3;
const DAYS_FOR_SEASON = 2;
export const MINUTES_FOR_RECENT = 35;

export interface Expected {
  /** A minute, at the window's end: what a surplus is compared with, and what a lack is. */
  readonly high: number;
  readonly low: number;
  /** Of one minute. */
  readonly spread: number;
  readonly seasonal: boolean;
}

/** Undefined while too little is known. */
export function expectedOf(window: SeriesWindow): Expected | undefined {
  if (window.knownMinutes < MINUTES_FOR_RECENT) return undefined;
  const days = window.season.filter(
    ({ daysAgo }) => window.knownMinutes * MINUTE_MS >= daysAgo * DAY_MS + 2 * QUARTER_MS,
  );
  return days.length < DAYS_FOR_SEASON ? recentOnly(window) : seasonal(window, days);
}

function recentOnly({ checks, knownMinutes }: SeriesWindow): Expected {
  const known = Array.from(checks.subarray(Math.max(0, MINUTES - Math.floor(knownMinutes)), COMPARED));
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

/** Between the middles of two quarter hours, on the line from one to the other. */
function perMinute(shape: Float64Array, sinceStartMs: number): number {
  const at = sinceStartMs / QUARTER_MS - 0.5;
  const left = Math.min(SLOTS - 2, Math.max(0, Math.floor(at)));
  const share = Math.min(1, Math.max(0, at - left));
  return (shape[left]! * (1 - share) + shape[left + 1]! * share) / 15;
}

/** As a standard deviation, if the values were normal. */
export function spreadOf(values: readonly number[], middle: number): number {
  return 1.4826 * median(values.map((value) => Math.abs(value - middle)));
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
