/**
 * The history of one process, beside the memory store: maps of packed counts, and a snapshot that a restart begins with.
 * Bounded: 1000 series a step and a fixed number of steps, at some 190 bytes a series and step (190 MB if 1000 rules had all kinds of
 * traffic all the time; 2 MB for ten). What no longer matters is forgotten when a step begins.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Log } from "../../log.js";
import {
  type History,
  MOST_SERIES,
  OTHER_SERIES,
  type Point,
  type SeriesCounts,
  type Step,
  stepAt,
  stepNames,
  steps,
  TOTAL_SERIES,
} from "./history.js";
import { HistorySnapshot, type KeptStep, type KeptText } from "./history-snapshot.js";
import { addCounts, addPacked, type Counts, packCounts, unpackCounts } from "./packed-counts.js";

/** As many texts as fit a fleet's presence and a day of top keys. */
const MOST_TEXTS = 10_000;
const SERIES_AT_ONCE = 100;
const SAVE_EVERY_MS = 10_000;
/** A large history is saved less often, so that saving takes no more than this of the disk and the event loop. */
const SAVED_BYTES_PER_MS = 1_000;

export interface MemoryHistoryOptions {
  /** Where the snapshot is kept; absent: nowhere. */
  readonly dataFolder: string | undefined;
  readonly log: Log;
  readonly now?: () => number;
  /** Series a step. Default 1000. */
  readonly mostSeries?: number;
}

export class MemoryHistory implements History {
  readonly lost = 0;
  readonly #kept: Readonly<Record<Step, Map<number, Map<string, string>>>> = {
    second: new Map(),
    minute: new Map(),
    quarter: new Map(),
  };
  readonly #texts = new Map<string, { text: string; endsAtMs: number }>();
  readonly #snapshot: HistorySnapshot | undefined;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #mostSeries: number;
  #timer: NodeJS.Timeout | undefined;
  #changed = false;

  static async open(options: MemoryHistoryOptions): Promise<MemoryHistory> {
    const history = new MemoryHistory(options);
    await history.#load();
    history.#saveLater(SAVE_EVERY_MS);
    return history;
  }

  private constructor({ dataFolder, log, now = Date.now, mostSeries = MOST_SERIES }: MemoryHistoryOptions) {
    this.#snapshot = dataFolder === undefined ? undefined : new HistorySnapshot(dataFolder);
    this.#log = log;
    this.#now = now;
    this.#mostSeries = mostSeries;
  }

  async add(atMs: number, counts: readonly SeriesCounts[], seconds = 0): Promise<void> {
    const marks = seconds > 0 && !this.#isMarked(stepAt("second", atMs));
    for (const step of stepNames) {
      const series = this.#stepOf(step, stepAt(step, atMs));
      if (marks) addTo(series, TOTAL_SERIES, { seconds });
      for (const [i, one] of counts.entries()) {
        // Checks are answered meanwhile: there may be a thousand series.
        if (i % SERIES_AT_ONCE === SERIES_AT_ONCE - 1) await nextTurn();
        const mayBegin = series.size < this.#mostSeries || one.series === TOTAL_SERIES;
        addTo(series, mayBegin || series.has(one.series) ? one.series : OTHER_SERIES, one.counts);
      }
    }
    this.#changed = true;
  }

  #isMarked(secondMs: number): boolean {
    const total = this.#kept.second.get(secondMs)?.get(TOTAL_SERIES);
    return total !== undefined && unpackCounts(total).seconds !== undefined;
  }

  #stepOf(step: Step, startMs: number): Map<string, string> {
    const kept = this.#kept[step];
    let series = kept.get(startMs);
    if (series === undefined) {
      series = new Map();
      kept.set(startMs, series);
      const tooOldMs = this.#now() - steps[step].keepMs;
      for (const atMs of kept.keys()) if (atMs < tooOldMs) kept.delete(atMs);
    }
    return series;
  }

  async read(step: Step, { fromMs, toMs }: { fromMs: number; toMs: number }): Promise<Map<string, Point[]>> {
    const read = new Map<string, Point[]>();
    const oldestMs = Math.max(fromMs, this.#now() - steps[step].keepMs);
    const inRange = [...this.#kept[step]].filter(([atMs]) => atMs >= oldestMs && atMs < toMs);
    for (const [atMs, series] of inRange.sort(([a], [b]) => a - b)) {
      for (const [name, packed] of series) {
        const points = read.get(name) ?? [];
        points.push({ atMs, counts: unpackCounts(packed) });
        read.set(name, points);
      }
      // Checks are answered between two steps of a thousand series.
      if (series.size > 100) await nextTurn();
    }
    return read;
  }

  readText(name: string): Promise<string | undefined> {
    return Promise.resolve(this.#textOf(name));
  }

  #textOf(name: string): string | undefined {
    const kept = this.#texts.get(name);
    if (kept === undefined || kept.endsAtMs > this.#now()) return kept?.text;
    this.#texts.delete(name);
    return undefined;
  }

  readTexts(prefix: string): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    for (const name of [...this.#texts.keys()]) {
      const text = name.startsWith(prefix) ? this.#textOf(name) : undefined;
      if (text !== undefined) found.set(name, text);
    }
    return Promise.resolve(found);
  }

  swapText(name: string, change: { was: string | undefined; now: string; keepMs: number }): Promise<boolean> {
    if (this.#textOf(name) !== change.was) return Promise.resolve(false);
    if (!this.#texts.has(name) && this.#texts.size >= MOST_TEXTS) this.#forgetEndedTexts();
    if (!this.#texts.has(name) && this.#texts.size >= MOST_TEXTS) return Promise.resolve(false);
    this.#texts.set(name, { text: change.now, endsAtMs: this.#now() + change.keepMs });
    this.#changed = true;
    return Promise.resolve(true);
  }

  #forgetEndedTexts(): void {
    for (const name of [...this.#texts.keys()]) this.#textOf(name);
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#save();
  }

  async #load(): Promise<void> {
    try {
      for await (const kept of this.#snapshot?.read() ?? []) {
        if ("text" in kept) this.#texts.set(kept.name, kept);
        else if (kept.atMs > this.#now() - steps[kept.step].keepMs) this.#kept[kept.step].set(kept.atMs, kept.series);
      }
    } catch (error) {
      for (const step of stepNames) this.#kept[step].clear();
      this.#texts.clear();
      this.#log.warn("the monitoring history cannot be read and begins anew", { error: String(error) });
    }
  }

  #saveLater(waitMs: number): void {
    if (this.#snapshot === undefined) return;
    this.#timer = setTimeout(async () => {
      const bytes = await this.#save();
      this.#saveLater(Math.max(SAVE_EVERY_MS, bytes / SAVED_BYTES_PER_MS));
    }, waitMs);
    this.#timer.unref();
  }

  /** The bytes that were written. */
  async #save(): Promise<number> {
    if (this.#snapshot === undefined || !this.#changed) return 0;
    this.#changed = false;
    this.#forgetEndedTexts();
    try {
      return await this.#snapshot.write(this.#everything());
    } catch (error) {
      this.#changed = true;
      this.#log.warn("the monitoring history could not be saved", { error: String(error) });
      return 0;
    }
  }

  *#everything(): Generator<KeptStep | KeptText> {
    for (const step of stepNames) {
      // A copy of the list: steps may begin and end while this is being written.
      for (const [atMs, series] of [...this.#kept[step]]) yield { step, atMs, series };
    }
    for (const [name, { text, endsAtMs }] of [...this.#texts]) yield { name, text, endsAtMs };
  }
}

function addTo(series: Map<string, string>, name: string, counts: Counts): void {
  const before = series.get(name);
  series.set(name, packCounts(before === undefined ? counts : sumOf(before, counts)));
}

function sumOf(packed: string, counts: Counts): Counts {
  const sum: Record<string, number> = {};
  addPacked(sum, packed);
  addCounts(sum, counts);
  return sum as Counts;
}
