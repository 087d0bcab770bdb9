/**
 * Reads requests from one or more access logs, in order of arrival. In: files. Out: batches of requests in order, and counts of what was
 * left out. A bad line is never fatal.
 */

import { SluiceError } from "sluice";
import { detectFormat } from "./formats.js";
import { InOrder } from "./in-order.js";
import {
  type LogFormat,
  LogMemos,
  type LogRequest,
  type ReadBytes,
  type ReadLine,
  type Wanted,
} from "./log-request.js";
import { type LineBatch, readLineBatches } from "./read-lines.js";
import { sluiceFormat } from "./sluice-format.js";
import { mergedByTime, TimedSource } from "./timed-source.js";

interface LogOptions extends Wanted {
  readonly files: readonly string[];
  /** Absent: detected for each file from its first lines. */
  readonly format?: LogFormat | undefined;
}

export interface LogCounts {
  lines: number;
  requests: number;
  /** Comments, empty lines, connections without a request. */
  blank: number;
  bad: number;
  /** The first few, with their position. */
  readonly badSamples: { file: string; line: number; text: string }[];
  /** Requests that arrived before others already emitted: replayed in the order in which they are read. */
  late: number;
  /** Requests without a client address: Envoy's default format has none. */
  withoutAddress: number;
  readonly formats: Map<string, string>;
  /** Truncated or damaged compressed files. */
  readonly torn: { file: string; why: string }[];
}

const MOST_SAMPLES = 5;
const SAMPLE_LENGTH = 200;
/**
 * Servers accept request lines and headers of about 32 KiB at most. A longer line counts as bad: thousands of requests are held back for
 * sorting, each with its line, and a file of long ones must not fill the memory. Lines of a recording may contain a whole rule book.
 */
const MOST_LINE_LENGTH = 2 ** 16;
/** Enough lines to detect a format if the log starts with noise. */
const DETECT_LINES = 200;

interface FileReader {
  readonly file: string;
  readonly read: ReadLine;
  readonly readBytes: ReadBytes;
  /** In characters. */
  readonly longest: number;
  /** So far. */
  lines: number;
}

export class Logs {
  readonly counts: LogCounts = {
    lines: 0,
    requests: 0,
    blank: 0,
    bad: 0,
    badSamples: [],
    late: 0,
    withoutAddress: 0,
    formats: new Map(),
    torn: [],
  };
  readonly #options: LogOptions;
  readonly #memos = new LogMemos();

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** Whether there may be recorded decisions. Valid from the first request on: by then every file has been opened. */
  get mayBeRecorded(): boolean {
    return [...this.counts.formats.values()].includes(sluiceFormat.name);
  }

  async *requests(): AsyncGenerator<LogRequest[]> {
    const order = new InOrder<LogRequest>();
    const sources = this.#options.files.map((file) => new TimedSource(this.#batches(file), ({ atMs }) => atMs));
    for await (const { items } of mergedByTime<LogRequest, TimedSource<LogRequest>>(sources)) {
      for (const request of items) order.add(request);
      const ready = order.take();
      this.counts.late = order.late;
      if (ready.length > 0) yield ready;
    }
    const rest = order.takeAll();
    this.counts.late = order.late;
    if (rest.length > 0) yield rest;
  }

  async *#batches(file: string): AsyncGenerator<LogRequest[]> {
    let held: LineBatch[] = [];
    let heldCount = 0;
    let reader: FileReader | undefined;
    for await (const batch of readLineBatches(file, (why) => this.counts.torn.push({ file, why }))) {
      if (reader !== undefined) {
        yield this.#take(reader, batch);
        continue;
      }
      held.push(batch.copy());
      heldCount += batch.count;
      if (heldCount < DETECT_LINES) continue;
      reader = this.#begin(file, held);
      for (const one of held) yield this.#take(reader, one);
      held = [];
    }
    // An empty file has neither a format nor requests.
    if (reader !== undefined || heldCount === 0) return;
    reader = this.#begin(file, held);
    for (const one of held) yield this.#take(reader, one);
  }

  #begin(file: string, held: readonly LineBatch[]): FileReader {
    const first = firstTexts(held, DETECT_LINES);
    const format = this.#options.format ?? detectFormat(first);
    if (format === undefined) {
      throw new SluiceError(
        "invalid-setting",
        `${file}: expected an access log in a known format (--format names one), got ${JSON.stringify((first.find((line) => line !== "") ?? "").slice(0, SAMPLE_LENGTH))}`,
      );
    }
    this.counts.formats.set(file, format.name);
    const wanted = { ...this.#options, memos: this.#memos };
    const { text, bytes = () => "unread" } = format.reader(wanted);
    return {
      file,
      read: text,
      readBytes: bytes,
      longest: format === sluiceFormat ? Number.POSITIVE_INFINITY : MOST_LINE_LENGTH,
      lines: 0,
    };
  }

  #take(reader: FileReader, batch: LineBatch): LogRequest[] {
    const { read, readBytes, longest } = reader;
    const { bytes, starts, ends, count } = batch;
    const requests: LogRequest[] = [];
    for (let i = 0; i < count; i++) {
      const from = starts[i]!;
      const end = ends[i]!;
      let found: ReturnType<ReadLine> | "unread" =
        end - from > MOST_LINE_LENGTH ? "unread" : readBytes(bytes, from, end);
      if (found === "unread") {
        const text = batch.text(i);
        found = text.length > longest ? undefined : read(text);
      }
      if (typeof found === "object") {
        requests.push(found);
        if (found.peer === undefined && found.recorded === undefined) this.counts.withoutAddress++;
      } else if (found === "blank") this.counts.blank++;
      else this.#bad(reader.file, reader.lines + i + 1, batch.text(i));
    }
    reader.lines += count;
    this.counts.lines += count;
    this.counts.requests += requests.length;
    return requests;
  }

  #bad(file: string, line: number, text: string): void {
    this.counts.bad++;
    if (this.counts.badSamples.length < MOST_SAMPLES) {
      this.counts.badSamples.push({ file, line, text: text.slice(0, SAMPLE_LENGTH) });
    }
  }
}

function firstTexts(batches: readonly LineBatch[], most: number): string[] {
  const texts: string[] = [];
  for (const batch of batches) {
    for (let i = 0; i < batch.count && texts.length < most; i++) texts.push(batch.text(i));
  }
  return texts;
}
