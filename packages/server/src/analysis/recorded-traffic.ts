/**
 * The traffic of a recording from a given time on, bounded in lines and duration: the console tries drafts on it.
 * In: a folder of segments. Out: batches of requests, and why reading ended.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { SEGMENT_NAME } from "../recording/segments.js";
import type { LogFormat, LogRequest } from "./log/log-request.js";
import { type LogCounts, Logs } from "./log/read-logs.js";
import { sluiceFormat } from "./log/sluice-format.js";

export interface TrafficOptions {
  readonly folder: string;
  readonly fromMs: number;
  readonly mostLines: number;
  readonly mostMs: number;
}

export class RecordedTraffic {
  readonly #logs: Logs;
  readonly #options: TrafficOptions;
  /** The bound that ended the reading before the traffic did. */
  endedBy: "lines" | "time" | undefined;

  constructor(options: TrafficOptions) {
    this.#options = options;
    const files = segmentsSince(options.folder, options.fromMs);
    this.#logs = new Logs({ files, format: sinceFormat(options.fromMs) });
  }

  get counts(): LogCounts {
    return this.#logs.counts;
  }

  async *requests(): AsyncGenerator<LogRequest[]> {
    const { fromMs, mostLines, mostMs } = this.#options;
    const startMonotonicMs = performance.now();
    for await (const batch of this.#logs.requests()) {
      yield batch.filter(({ atMs }) => atMs >= fromMs);
      if (this.counts.requests >= mostLines) this.endedBy = "lines";
      else if (performance.now() - startMonotonicMs >= mostMs) this.endedBy = "time";
      if (this.endedBy !== undefined) return;
    }
  }
}

/** Segments modified since then. A segment deleted in the meantime is skipped. */
function segmentsSince(folder: string, fromMs: number): string[] {
  return readdirSync(folder)
    .filter((name) => SEGMENT_NAME.test(name))
    .sort()
    .map((name) => join(folder, name))
    .filter((file) => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) >= fromMs);
}

const AT = '{"at":';

/** Skips earlier lines without parsing them, which may be most of an hour's segment. */
function sinceFormat(fromMs: number): LogFormat {
  return {
    name: sluiceFormat.name,
    reader: (wanted) => {
      const read = sluiceFormat.reader(wanted).text;
      const isBefore = (line: string): boolean =>
        line.startsWith(AT) && Number.parseInt(line.slice(AT.length, AT.length + 16), 10) < fromMs;
      return { text: (line) => (isBefore(line) ? "blank" : read(line)) };
    },
  };
}
