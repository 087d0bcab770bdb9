/**
 * Reads from the history what the detectors look at: every series' last hour by the minute, each minute once; the same hours of earlier
 * days by the quarter, each quarter hour once. Nothing is read on the path of a request.
 */
import { type History, type Point, ruleOfSeries, TOTAL_SERIES } from "../history/history.js";
import {
  countsByStep,
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
  /** Of every rule with traffic, and of the total (rule undefined). */
  readonly windows: readonly { readonly rule: string | undefined; readonly window: SeriesWindow }[];
  readonly total: SeriesWindow | undefined;
  /** Of the last whole minute, in total. */
  readonly lastMinute: { readonly requests: number; readonly degraded: number };
}

/** Instances write each second; a minute is whole when all have. */
const SETTLED_AFTER_MS = 5_000;
const SINCE = "alerts:since";
const SINCE_KEEP_MS = 9 * DAY_MS;

type Days = readonly { readonly daysAgo: number; readonly points: ReadonlyMap<string, readonly Point[]> }[];

export class SeriesReader {
  readonly #history: History;
  #lastEndMs = 0;
  #season: { fromMs: number; days: Days } | undefined;

  constructor(history: History) {
    this.#history = history;
  }

  /** Undefined where no minute has ended since the last call. */
  async next(nowMs: number): Promise<SeriesRound | undefined> {
    const settledMs = nowMs - SETTLED_AFTER_MS;
    const endMs = settledMs - (settledMs % MINUTE_MS);
    if (endMs === this.#lastEndMs) return undefined;
    const fromMs = endMs - MINUTES * MINUTE_MS;
    const minutes = await this.#history.read("minute", { fromMs, toMs: endMs });
    const days = await this.#readSeason(seasonStart(endMs));
    const sinceMs = await this.#knownSince(nowMs);
    this.#lastEndMs = endMs;
    const total = countsByStep(minutes.get(TOTAL_SERIES) ?? [], { fromMs, lengthMs: MINUTE_MS, count: MINUTES });
    const knownMinutes = Math.floor((endMs - sinceMs) / MINUTE_MS);
    // Without earlier days, an hour that begins with silence is one in which the service was not there yet, or hardly used.
    const firstUsed = total.checks.findIndex((count) => count > 0);
    const known = days.length > 0 ? knownMinutes : Math.min(knownMinutes, firstUsed < 0 ? 0 : MINUTES - firstUsed);
    const windowOf = (series: string): SeriesWindow => ({
      endMs,
      knownMinutes: known,
      ...countsByStep(minutes.get(series) ?? [], { fromMs, lengthMs: MINUTE_MS, count: MINUTES }),
      seasonFromMs: seasonStart(endMs),
      season: days.map(({ daysAgo, points }) => dayOf(points.get(series) ?? [], daysAgo, seasonStart(endMs))),
    });
    const names = new Set([...minutes.keys(), ...days.flatMap(({ points }) => [...points.keys()])]);
    const windows = [...names].map((series) => ({ rule: ruleOfSeries(series), window: windowOf(series) }));
    const last = minutes.get(TOTAL_SERIES)?.find(({ atMs }) => atMs === endMs - MINUTE_MS)?.counts ?? {};
    return {
      endMs,
      knownMinutes: known,
      windows,
      total: names.has(TOTAL_SERIES) ? windowOf(TOTAL_SERIES) : undefined,
      lastMinute: { requests: (last.allowed ?? 0) + (last.refused ?? 0), degraded: last.degraded ?? 0 },
    };
  }

  /** Days on which the service was not there say nothing about what is usual. */
  async #readSeason(fromMs: number): Promise<Days> {
    if (this.#season?.fromMs !== fromMs) {
      const days = await Promise.all(
        Array.from({ length: DAYS }, async (_, i) => {
          const startMs = fromMs - (i + 1) * DAY_MS;
          const range = { fromMs: startMs, toMs: startMs + SLOTS * QUARTER_MS };
          return { daysAgo: i + 1, points: await this.#history.read("quarter", range) };
        }),
      );
      this.#season = { fromMs, days: days.filter(({ points }) => points.has(TOTAL_SERIES)) };
    }
    return this.#season.days;
  }

  /** When somebody first looked. The text outlives its readers by some days and is written anew by each that looks. */
  async #knownSince(nowMs: number): Promise<number> {
    const was = await this.#history.readText(SINCE);
    const since = was === undefined ? nowMs : Number(was);
    await this.#history.swapText(SINCE, { was, now: String(since), keepMs: SINCE_KEEP_MS });
    return since;
  }
}

function dayOf(points: readonly Point[], daysAgo: number, seasonFromMs: number): EarlierDay {
  const steps = { fromMs: seasonFromMs - daysAgo * DAY_MS, lengthMs: QUARTER_MS, count: SLOTS };
  return { daysAgo, ...countsByStep(points, steps) };
}
