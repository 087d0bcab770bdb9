/**
 * Reads the detectors' input from the history: every series' last hour by the minute, and the same hours of earlier days by the quarter
 * hour. Each step is read once, one at a time, and cached: a thousand rules must not delay checks.
 */

import type { SharedState } from "../../instance/shared-state.js";
import { isComparison } from "../candidate-comparison.js";
import { type History, type Step, steps, TOTAL_SERIES } from "../history/history.js";
import {
  DAY_MS,
  DAYS,
  type EarlierDay,
  MINUTE_MS,
  MINUTES,
  QUARTER_MS,
  type SeriesWindow,
  SLOTS,
  seasonStart,
} from "./series-window.js";

export interface SeriesRound {
  readonly endMs: number;
  readonly knownMinutes: number;
  /** Every series with counts: `total`, and those of rules. */
  readonly series: readonly string[];
  windowOf(series: string): SeriesWindow;
  /** Totals of the last whole minute. */
  readonly lastMinute: { readonly requests: number; readonly degraded: number };
}

interface StepCounts {
  readonly checks: number;
  readonly refused: number;
  readonly degraded: number;
}

interface StepSeries {
  readonly counts: ReadonlyMap<string, StepCounts>;
  /** Not counted, or in part only. */
  readonly isGap: boolean;
}

/** Seconds of a minute that must be counted: a recorder may be a few late. */
const LEAST_SECONDS = 54;

/**
 * Instances write every second; a minute is complete once all have written. Late writes are picked up by reading the latest steps again.
 */
const SETTLED_AFTER_MS = 5_000;
const READ_AGAIN = 2;
const SINCE = "alerts:since";
const SINCE_KEEP_MS = 9 * DAY_MS;

export class SeriesReader {
  readonly #history: History;
  readonly #shared: SharedState;
  readonly #read: Readonly<Record<"minute" | "quarter", Map<number, StepSeries>>> = {
    minute: new Map(),
    quarter: new Map(),
  };
  #lastEndMs = 0;

  constructor({ history, shared }: { history: History; shared: SharedState }) {
    this.#history = history;
    this.#shared = shared;
  }

  /** Undefined if no minute has ended since the last call. */
  async next(nowMs: number): Promise<SeriesRound | undefined> {
    const settledMs = nowMs - SETTLED_AFTER_MS;
    const endMs = settledMs - (settledMs % MINUTE_MS);
    if (endMs === this.#lastEndMs) return undefined;
    const minuteStarts = startsFrom(endMs - MINUTES * MINUTE_MS, MINUTE_MS, MINUTES);
    for (const startMs of minuteStarts.slice(-READ_AGAIN)) this.#read.minute.delete(startMs);
    const minutes = await this.#readSteps("minute", minuteStarts);
    const seasonFromMs = seasonStart(endMs);
    const quarterStarts = Array.from({ length: DAYS }, (_, i) =>
      startsFrom(seasonFromMs - (i + 1) * DAY_MS, QUARTER_MS, SLOTS),
    );
    const quarters = await this.#readSteps("quarter", quarterStarts.flat());
    const sinceMs = await this.#knownSince(nowMs);
    this.#lastEndMs = endMs;
    // Days without the service running say nothing about normal traffic.
    const days = quarterStarts.flatMap((_, i) => {
      const slots = quarters.slice(i * SLOTS, (i + 1) * SLOTS);
      return slots.some(({ counts }) => counts.has(TOTAL_SERIES)) ? [{ daysAgo: i + 1, slots }] : [];
    });
    const knownMinutes = knownFor({ minutes, endMs, sinceMs, seasonal: days.length > 0 });
    const total = minutes.at(-1)!.counts.get(TOTAL_SERIES);
    const gaps = new Set(minutes.flatMap(({ isGap }, i) => (isGap ? [i] : [])));
    return {
      endMs,
      knownMinutes,
      series: [...new Set([...minutes, ...quarters].flatMap(({ counts }) => [...counts.keys()]))],
      windowOf: (series) => ({
        endMs,
        knownMinutes,
        ...columnsOf(minutes, series),
        gaps,
        seasonFromMs,
        season: days.map(({ daysAgo, slots }): EarlierDay => ({ daysAgo, ...columnsOf(slots, series) })),
      }),
      lastMinute: { requests: total?.checks ?? 0, degraded: total?.degraded ?? 0 },
    };
  }

  async #readSteps(step: "minute" | "quarter", starts: readonly number[]): Promise<StepSeries[]> {
    const read = this.#read[step];
    const wanted = new Set(starts);
    for (const startMs of [...read.keys()]) if (!wanted.has(startMs)) read.delete(startMs);
    for (const startMs of starts) if (!read.has(startMs)) read.set(startMs, await this.#readStep(step, startMs));
    return starts.map((startMs) => read.get(startMs)!);
  }

  async #readStep(step: Step, startMs: number): Promise<StepSeries> {
    const found = await this.#history.read(step, { fromMs: startMs, toMs: startMs + steps[step].lengthMs });
    const counted = new Map<string, StepCounts>();
    // Steps from older versions have no `seconds`: with counts, they are covered.
    const seconds = found.get(TOTAL_SERIES)?.[0]?.counts.seconds;
    const isGap = seconds === undefined ? found.size === 0 : seconds < LEAST_SECONDS;
    for (const [series, points] of found) {
      const { allowed = 0, refused = 0, degraded = 0 } = points[0]?.counts ?? {};
      // A covered step without requests is no sign of use, and a candidate's comparison series is no traffic.
      if (allowed + refused + degraded === 0 || isComparison(series)) continue;
      counted.set(series, { checks: allowed + refused, refused, degraded });
    }
    return { counts: counted, isGap };
  }

  /** The time of the first read. Each read extends the text's TTL, so it outlives a restart by some days. */
  async #knownSince(nowMs: number): Promise<number> {
    const was = await this.#shared.read(SINCE);
    const since = was === undefined ? nowMs : Number(was);
    await this.#shared.swap(SINCE, { was, now: String(since), keepMs: SINCE_KEEP_MS });
    return since;
  }
}

/** Without earlier days, leading silence in the hour means that the service was not running yet, or hardly used. */
function knownFor(hour: { minutes: readonly StepSeries[]; endMs: number; sinceMs: number; seasonal: boolean }): number {
  const { minutes, endMs, sinceMs, seasonal } = hour;
  const known = Math.floor((endMs - sinceMs) / MINUTE_MS);
  const firstUsed = minutes.findIndex(({ counts }) => (counts.get(TOTAL_SERIES)?.checks ?? 0) > 0);
  return seasonal ? known : Math.min(known, firstUsed < 0 ? 0 : MINUTES - firstUsed);
}

function startsFrom(fromMs: number, lengthMs: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => fromMs + i * lengthMs);
}

function columnsOf(stepsInOrder: readonly StepSeries[], series: string): Pick<SeriesWindow, "checks" | "refused"> {
  const checks = new Float64Array(stepsInOrder.length);
  const refused = new Float64Array(stepsInOrder.length);
  for (let i = 0; i < stepsInOrder.length; i++) {
    const counts = stepsInOrder[i]!.counts.get(series);
    if (counts === undefined) continue;
    checks[i] = counts.checks;
    refused[i] = counts.refused;
  }
  return { checks, refused };
}
