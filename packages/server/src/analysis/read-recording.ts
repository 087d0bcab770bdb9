/**
 * The lines of recordings, in the order in which the store decided: the segments of an instance one after the other, several instances by time.
 */
import { SluiceError } from "sluice";
import { type HeaderLine, parseLine, type RecordingLine } from "../recording/recording-lines.js";
import { readLines } from "./log/read-lines.js";

interface RecordingCounts {
  lines: number;
  /** Lines that are none of a recording: torn, or edited. */
  bad: number;
  readonly instances: Set<string>;
  /** Segments without their last line: still written to, or torn by a crash. */
  readonly unfinished: string[];
}

interface Segment {
  readonly file: string;
  readonly header: HeaderLine;
}

export class Recordings {
  readonly counts: RecordingCounts = { lines: 0, bad: 0, instances: new Set(), unfinished: [] };
  readonly #files: readonly string[];

  constructor(files: readonly string[]) {
    this.#files = files;
  }

  async *lines(): AsyncGenerator<{ instance: string; lines: readonly RecordingLine[] }> {
    const byInstance = new Map<string, Segment[]>();
    for (const file of this.#files) {
      const header = await headerOf(file);
      byInstance.set(header.instance, [...(byInstance.get(header.instance) ?? []), { file, header }]);
      this.counts.instances.add(header.instance);
    }
    const open = [...byInstance].map(([instance, segments]) => new Source(instance, this.#ofInstance(segments)));
    for (;;) {
      await Promise.all(open.map((source) => source.fill()));
      const left = open.filter(({ isOver }) => !isOver);
      let first = left[0];
      if (first === undefined) return;
      for (const source of left) if (source.nextMs < first.nextMs) first = source;
      const others = left.filter((source) => source !== first).map(({ nextMs }) => nextMs);
      yield { instance: first.instance, lines: first.takeUntil(Math.min(...others)) };
    }
  }

  async *#ofInstance(segments: Segment[]): AsyncGenerator<RecordingLine[]> {
    segments.sort((a, b) => a.header.segment - b.header.segment);
    for (const { file } of segments) {
      let isFinished = false;
      for await (const texts of readLines(file)) {
        const lines: RecordingLine[] = [];
        for (const text of texts) {
          const line = parseLine(text);
          if (line === undefined) this.counts.bad++;
          else if ("end" in line) isFinished = true;
          else lines.push(line);
        }
        this.counts.lines += texts.length;
        yield lines;
      }
      if (!isFinished) this.counts.unfinished.push(file);
    }
  }
}

/** The lines of one instance that were read and not taken. */
class Source {
  readonly instance: string;
  readonly #batches: AsyncGenerator<RecordingLine[]>;
  #held: RecordingLine[] = [];
  #at = 0;
  /** Of the next line, or of the last that had a time. */
  nextMs = 0;
  isOver = false;

  constructor(instance: string, batches: AsyncGenerator<RecordingLine[]>) {
    this.instance = instance;
    this.#batches = batches;
  }

  async fill(): Promise<void> {
    while (!this.isOver && this.#at >= this.#held.length) {
      const next = await this.#batches.next();
      this.isOver = next.done === true;
      this.#held = next.value ?? [];
      this.#at = 0;
    }
    this.#look();
  }

  #look(): void {
    const next = this.#held[this.#at];
    if (next !== undefined && "at" in next) this.nextMs = next.at;
  }

  /** The lines up to the time; at least one. */
  takeUntil(endMs: number): readonly RecordingLine[] {
    const from = this.#at;
    do {
      this.#at++;
      this.#look();
    } while (this.#at < this.#held.length && this.nextMs <= endMs);
    return from === 0 && this.#at === this.#held.length ? this.#held : this.#held.slice(from, this.#at);
  }
}

async function headerOf(file: string): Promise<HeaderLine> {
  for await (const [first = ""] of readLines(file)) {
    const line = parseLine(first);
    if (line !== undefined && "sluice" in line) return line;
    break;
  }
  throw new SluiceError("invalid-setting", `${file}: expected a recording of sluice serve --record`);
}
