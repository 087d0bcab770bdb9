/** Reads the lines of recordings: an instance's segments one after the other, several instances merged by the millisecond. */
import { SluiceError } from "sluice";
import { type HeaderLine, parseLine, type RecordingLine } from "../recording/recording-lines.js";
import { readLines } from "./log/read-lines.js";
import { mergedByTime, TimedSource } from "./log/timed-source.js";

interface RecordingCounts {
  lines: number;
  /** Invalid lines: torn, or edited. */
  bad: number;
  readonly instances: Set<string>;
  /** Segments without their end line: still being written, or torn by a crash. */
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
    const sources = [...byInstance].map(
      ([instance, segments]) => new InstanceLines(instance, this.#ofInstance(segments)),
    );
    for await (const { source, items } of mergedByTime<RecordingLine, InstanceLines>(sources))
      yield { instance: source.instance, lines: items };
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

/** The lines of one instance. */
class InstanceLines extends TimedSource<RecordingLine> {
  readonly instance: string;

  constructor(instance: string, batches: AsyncGenerator<RecordingLine[]>) {
    super(batches, (line) => ("at" in line ? line.at : undefined));
    this.instance = instance;
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
