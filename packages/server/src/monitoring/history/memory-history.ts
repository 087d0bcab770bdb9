/**
 * The history of a single process with a memory store: maps of packed counts, with a snapshot that survives restarts.
 * Bounded: 1000 series per step and a fixed number of steps, at about 190 bytes per series and step (190 MB if 1000 rules had all kinds of
 * traffic all the time; 2 MB for ten). Expired steps are dropped when a new step starts.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { Snapshot } from "../../instance/snapshot.js";
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
import { addCounts, addPacked, type Counts, packCounts, unpackCounts } from "./packed-counts.js";

const SERIES_AT_ONCE = 100;
const FILE = "monitoring-history";

export interface MemoryHistoryOptions {
  /** Where the snapshot is stored; absent: nowhere. */
  readonly dataFolder: string | undefined;
  readonly log: Log;
  readonly now?: () => number;
  /** Series per step. Default 1000. */
  readonly mostSeries?: number;
}

export class MemoryHistory implements History {
  readonly lost = 0;
  readonly #kept: Readonly<Record<Step, Map<number, Map<string, string>>>> = {
    second: new Map(),
    minute: new Map(),
    quarter: new Map(),
  };
  readonly #now: () => number;
  readonly #mostSeries: number;
  #snapshot: Snapshot | undefined;

  static async open(options: MemoryHistoryOptions): Promise<MemoryHistory> {
    const { dataFolder, log } = options;
    const history = new MemoryHistory(options);
    if (dataFolder === undefined) return history;
    history.#snapshot = await Snapshot.open({
      folder: dataFolder,
      file: FILE,
      title: "the monitoring history",
      log,
      load: (line) => history.#load(line),
      clear: () => {
        for (const step of stepNames) history.#kept[step].clear();
      },
      lines: () => history.#lines(),
    });
    return history;
  }

  private constructor({ now = Date.now, mostSeries = MOST_SERIES }: MemoryHistoryOptions) {
    this.#now = now;
    this.#mostSeries = mostSeries;
  }

  async add(atMs: number, counts: readonly SeriesCounts[], seconds = 0): Promise<void> {
    const marks = seconds > 0 && !this.#isMarked(stepAt("second", atMs));
    for (const step of stepNames) {
      const series = this.#stepOf(step, stepAt(step, atMs));
      if (marks) addTo(series, TOTAL_SERIES, { seconds });
      for (const [i, one] of counts.entries()) {
        // Yield to the event loop: there may be a thousand series.
        if (i % SERIES_AT_ONCE === SERIES_AT_ONCE - 1) await nextTurn();
        const mayBegin = series.size < this.#mostSeries || one.series === TOTAL_SERIES;
        addTo(series, mayBegin || series.has(one.series) ? one.series : OTHER_SERIES, one.counts);
      }
    }
    this.#snapshot?.changed();
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
      // Yield between steps of up to a thousand series.
      if (series.size > 100) await nextTurn();
    }
    return read;
  }

  async close(): Promise<void> {
    await this.#snapshot?.close();
  }

  #load(line: unknown): void {
    const { step, atMs, series, text } = line as Record<string, unknown>;
    // Older versions kept shared texts in this file too.
    if (text !== undefined) return;
    if (!isStep(step) || !Number.isSafeInteger(atMs) || !isTexts(series)) {
      throw new Error(`${FILE} has a line that is no step`);
    }
    const startMs = atMs as number;
    if (startMs > this.#now() - steps[step].keepMs) this.#kept[step].set(startMs, new Map(Object.entries(series)));
  }

  *#lines(): Generator<object> {
    for (const step of stepNames) {
      // Iterate over a copy: steps may start and end while this is being written.
      for (const [atMs, series] of [...this.#kept[step]]) yield { step, atMs, series: Object.fromEntries(series) };
    }
  }
}

function isStep(value: unknown): value is Step {
  return typeof value === "string" && Object.hasOwn(steps, value);
}

function isTexts(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
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
