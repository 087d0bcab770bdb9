/**
 * Days of traffic by the minute, from a seed: a daily shape, quieter weekends, slow growth, a level that wanders, bursts, and Poisson noise
 * on top; and what the detectors would see of it at any minute. Anomalies are put in by whoever asks.
 */
import {
  DAYS,
  MINUTE_MS,
  MINUTES,
  type SeriesWindow,
  SLOTS,
  seasonStart,
} from "../../packages/server/src/monitoring/alerts/series-window.js";
import { randomOf } from "../harness/random.js";

export const DAY = 1_440;
/** A Monday, at midnight UTC. */
const START_MS = Date.UTC(2026, 10, 2);

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function poisson(mean: number, random: () => number): number {
  if (mean > 50) return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  let count = 0;
  for (let p = random(), edge = Math.exp(-mean); p > edge; p *= random()) count++;
  return count;
}

export interface TrafficOptions {
  readonly seed: number;
  readonly days: number;
  /** Checks a minute on a weekday's average. */
  readonly perMinute: number;
  readonly weekend?: number;
  readonly growthADay?: number;
  /** Share of refusals. */
  readonly refused?: number;
  /** Deviation of the minutes beyond Poisson's. */
  readonly burstiness?: number;
}

export interface Traffic {
  readonly checks: Float64Array;
  readonly refused: Float64Array;
  /** The same by quarter hour. */
  readonly quarters: { readonly checks: Float64Array; readonly refused: Float64Array };
}

/** Every rule its own character, from volumes of 3 to 3000 a minute. */
export function someRule(seed: number, days: number): TrafficOptions {
  const random = randomOf(seed * 7_919 + 1);
  return {
    seed,
    days,
    perMinute: 3 * 1_000 ** random(),
    weekend: 0.4 + 0.6 * random(),
    growthADay: 0.03 * random(),
    refused: [0, 0.01, 0.05, 0.3][Math.floor(4 * random())]!,
    burstiness: 0.25 * random(),
  };
}

export function traffic(options: TrafficOptions): Traffic {
  const { seed, days, perMinute, weekend = 0.7, growthADay = 0, refused = 0, burstiness = 0.1 } = options;
  const random = randomOf(seed);
  const depth = 0.3 + 0.5 * random();
  const peak = 11 + 6 * random();
  const minutes = days * DAY;
  const out = { checks: new Float64Array(minutes), refused: new Float64Array(minutes) };
  let wander = 0;
  let shareWander = 0;
  for (let i = 0; i < minutes; i++) {
    const day = Math.floor(i / DAY);
    const hour = (i % DAY) / 60;
    wander = wander * 0.98 + 0.2 * 0.1 * normal(random);
    shareWander = shareWander * 0.98 + 0.2 * 0.2 * normal(random);
    const shape =
      1 + depth * Math.cos(((hour - peak) / 24) * 2 * Math.PI) + 0.15 * Math.cos(((hour - 20) / 12) * 2 * Math.PI);
    const weekly = day % 7 >= 5 ? weekend : 1;
    const burst = Math.exp(burstiness * normal(random) - burstiness ** 2 / 2);
    const mean = perMinute * shape * weekly * (1 + growthADay) ** day * Math.exp(wander) * burst;
    out.checks[i] = poisson(mean, random);
    out.refused[i] = Math.min(out.checks[i]!, poisson(out.checks[i]! * refused * Math.exp(shareWander), random));
  }
  return withQuarters(out);
}

export function withQuarters(minutes: { checks: Float64Array; refused: Float64Array }): Traffic {
  const byQuarter = (counts: Float64Array): Float64Array => {
    const quarters = new Float64Array(Math.ceil(counts.length / 15));
    for (let i = 0; i < counts.length; i++) quarters[Math.floor(i / 15)]! += counts[i]!;
    return quarters;
  };
  return { ...minutes, quarters: { checks: byQuarter(minutes.checks), refused: byQuarter(minutes.refused) } };
}

/** What is known after so many whole minutes. `knownMinutes`: as if the history had begun that long ago. */
export function windowAt(series: Traffic, minute: number, knownMinutes = minute): SeriesWindow {
  const endMs = START_MS + minute * MINUTE_MS;
  const seasonFromMs = seasonStart(endMs);
  const first = (seasonFromMs - START_MS) / MINUTE_MS;
  const season = Array.from({ length: DAYS }, (_, i) => i + 1)
    .map((daysAgo) => ({ daysAgo, from: (first - daysAgo * DAY) / 15 }))
    .filter(({ from }) => from >= 0)
    .map(({ daysAgo, from }) => ({
      daysAgo,
      checks: series.quarters.checks.subarray(from, from + SLOTS),
      refused: series.quarters.refused.subarray(from, from + SLOTS),
    }));
  return {
    endMs,
    knownMinutes,
    checks: series.checks.subarray(minute - MINUTES, minute),
    refused: series.refused.subarray(minute - MINUTES, minute),
    seasonFromMs,
    season,
  };
}

/** The same traffic with some of its minutes changed. */
export function changed(
  series: Traffic,
  { from, minutes, times = 1, refused }: { from: number; minutes: number; times?: number; refused?: number },
): Traffic {
  const checks = series.checks.slice();
  const refusals = series.refused.slice();
  for (let i = from; i < from + minutes; i++) {
    checks[i] = Math.round(checks[i]! * times);
    refusals[i] = Math.round(refused === undefined ? refusals[i]! * times : checks[i]! * refused);
  }
  return withQuarters({ checks, refused: refusals });
}
