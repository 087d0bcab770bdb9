/**
 * Detects far more or far fewer checks than expected (`baseline.ts`) for several minutes in a row. Pure.
 * Low-volume guard: a difference of a few checks per minute is ignored, however large as a share.
 */
import { type Expected, expectedOf } from "./baseline.js";
import { type Finding, figure, subjectOf } from "./finding.js";
import { MINUTES, type SeriesWindow, sumOf } from "./series-window.js";

interface Bounds {
  /** Multiples of the expected rate. */
  readonly fire: number;
  readonly hold: number;
  /** Consecutive whole minutes, each beyond `each` times the expected rate. */
  readonly minutes: number;
  readonly each: number;
}

const more: Bounds = { fire: 2, hold: 1.5, minutes: 3, each: 1.7 };
const fewer: Bounds = { fire: 0.35, hold: 0.6, minutes: 5, each: 0.5 };
/** While only the last hour is known, every morning looks like an anomaly: use higher thresholds. */
const moreInWarmUp: Bounds = { fire: 4, hold: 2, minutes: 4, each: 3 };
const fewerInWarmUp: Bounds = { fire: 0.1, hold: 0.4, minutes: 5, each: 0.2 };

const SPREADS = 5;
/** Per minute. */
const LEAST_SURPLUS = 25;
const LEAST_EXPECTED = 30;
/** For series with hardly any expected traffic. */
const NEARLY_NOTHING = 5;
const LEAST_OUT_OF_NOTHING = 100;

/** `tuning` overrides the default bounds: `above` and `below`, in multiples of the expected rate. */
interface RateTuning {
  readonly above?: number;
  readonly below?: number;
}

export function unusualRate(
  window: SeriesWindow,
  rule: string | undefined,
  tuning: RateTuning = {},
): Finding | undefined {
  const expected = expectedOf(window);
  if (expected === undefined) return undefined;
  const level = surplus(window, expected, tuning) ?? lack(window, expected, tuning);
  if (level === undefined) return undefined;
  const { seen, usual, word } = level;
  const about = rule === undefined ? "requests in total" : `checks of rule ${rule}`;
  const times =
    usual >= 1 ? `, ${figure(seen / usual)} times the usual ${figure(usual)}` : ", where hardly any are usual";
  return {
    subject: subjectOf("unusual-rate", rule),
    kind: "unusual-rate",
    ...(rule !== undefined && { rule }),
    severity: "warning",
    summary: `${word} ${about}: ${figure(seen)} a minute${times}${expected.seasonal ? "" : " of the last hour"}`,
    value: seen,
    expected: usual,
    level: level.level,
  };
}

interface Judged {
  readonly level: Finding["level"];
  readonly seen: number;
  readonly usual: number;
  readonly word: string;
}

/** Scales the bounds for firing and holding together. */
function tuned(bounds: Bounds, fire: number | undefined): Bounds {
  if (fire === undefined) return bounds;
  const moved = (bound: number): number => 1 + ((bound - 1) * (fire - 1)) / (bounds.fire - 1);
  return { ...bounds, fire, hold: moved(bounds.hold), each: moved(bounds.each) };
}

function surplus(
  { checks }: SeriesWindow,
  { high: usual, spread, seasonal }: Expected,
  { above }: RateTuning,
): Judged | undefined {
  const warmUp = above === undefined ? undefined : Math.max(above, moreInWarmUp.fire);
  const bounds = seasonal ? tuned(more, above) : tuned(moreInWarmUp, warmUp);
  const seen = sumOf(checks, MINUTES - bounds.minutes, MINUTES) / bounds.minutes;
  const atLeast = usual < NEARLY_NOTHING ? LEAST_OUT_OF_NOTHING : usual + LEAST_SURPLUS;
  const beyondNoise = usual + SPREADS * Math.max(Math.sqrt(usual), spread);
  const eachIs = lastMinutes(checks, bounds.minutes).every((count) => count >= bounds.each * usual && count > 0);
  if (eachIs && seen >= Math.max(bounds.fire * usual, atLeast, beyondNoise)) {
    return { level: "fire", seen, usual, word: "many" };
  }
  return seen >= Math.max(bounds.hold * usual, usual + LEAST_SURPLUS / 2)
    ? { level: "hold", seen, usual, word: "many" }
    : undefined;
}

function lack(
  { checks, gaps }: SeriesWindow,
  { low: usual, spread, seasonal }: Expected,
  { below }: RateTuning,
): Judged | undefined {
  const warmUp = below === undefined ? undefined : Math.min(below, fewerInWarmUp.fire);
  const bounds = seasonal ? tuned(fewer, below) : tuned(fewerInWarmUp, warmUp);
  const seen = sumOf(checks, MINUTES - bounds.minutes, MINUTES) / bounds.minutes;
  if (usual < LEAST_EXPECTED) return undefined;
  // What nobody counted is unknown, and no lack.
  for (let i = MINUTES - bounds.minutes; i < MINUTES; i++) if (gaps?.has(i)) return undefined;
  const beyondNoise = usual - (SPREADS / Math.sqrt(bounds.minutes)) * Math.max(Math.sqrt(usual), spread);
  const eachIs = lastMinutes(checks, bounds.minutes).every((count) => count <= bounds.each * usual);
  if (eachIs && seen <= Math.min(bounds.fire * usual, beyondNoise)) return { level: "fire", seen, usual, word: "few" };
  return seen <= bounds.hold * usual ? { level: "hold", seen, usual, word: "few" } : undefined;
}

function lastMinutes(checks: Float64Array, minutes: number): readonly number[] {
  return Array.from(checks.subarray(MINUTES - minutes));
}
