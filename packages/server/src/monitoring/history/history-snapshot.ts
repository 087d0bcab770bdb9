/**
 * The memory history in a file of the data folder: a line for each step and each text, whole or not at all.
 * The last line tells how many there are, so that a file which was cut off is known for what it is.
 */
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Step, steps } from "./history.js";

export interface KeptStep {
  readonly step: Step;
  readonly atMs: number;
  /** Packed counts by series. */
  readonly series: Map<string, string>;
}

export interface KeptText {
  readonly name: string;
  readonly text: string;
  readonly endsAtMs: number;
}

const FILE = "monitoring-history";
/** Whatever it holds, a file past this is not ours to read into memory. */
const LARGEST_BYTES = 512 * 1024 * 1024;
const LAYOUT = 1;

export class HistorySnapshot {
  readonly #folder: string;
  readonly #file: string;
  #lastWrite: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
    this.#file = join(folder, FILE);
  }

  /** Nothing if there is no file; throws if it is damaged. */
  async *read(): AsyncGenerator<KeptStep | KeptText> {
    const found = await stat(this.#file).catch(() => undefined);
    if (found === undefined) return;
    if (found.size > LARGEST_BYTES) throw new Error(`${FILE} has ${found.size} bytes`);
    let lines = 0;
    let end: number | undefined;
    for await (const line of createInterface({
      input: createReadStream(this.#file),
      crlfDelay: Number.POSITIVE_INFINITY,
    })) {
      const read = JSON.parse(line) as unknown;
      if (lines === 0 && (read as { layout?: unknown }).layout !== LAYOUT)
        throw new Error(`${FILE} has another layout`);
      if (lines > 0 && end === undefined) {
        end = (read as { end?: number }).end;
        if (end === undefined) yield keptOf(read);
      }
      lines++;
    }
    if (end === undefined || end !== lines - 2) throw new Error(`${FILE} is cut off after ${lines} lines`);
  }

  /** One after the other, so that the last to be written is the last on disk. Resolves with the bytes. */
  write(everything: Iterable<KeptStep | KeptText>): Promise<number> {
    const mine = this.#lastWrite.then(() => this.#write(everything));
    this.#lastWrite = mine.catch(() => undefined);
    return mine;
  }

  async #write(everything: Iterable<KeptStep | KeptText>): Promise<number> {
    await mkdir(this.#folder, { recursive: true });
    const draft = `${this.#file}.${process.pid}`;
    const file = await open(draft, "w", 0o600);
    let bytes = 0;
    let lines = 0;
    const writeLine = async (value: unknown): Promise<void> => {
      const { bytesWritten } = await file.write(`${JSON.stringify(value)}\n`);
      bytes += bytesWritten;
    };
    try {
      await writeLine({ layout: LAYOUT });
      for (const kept of everything) {
        await writeLine("text" in kept ? kept : { ...kept, series: Object.fromEntries(kept.series) });
        // Checks are answered between two lines.
        if (++lines % 16 === 0) await nextTurn();
      }
      await writeLine({ end: lines });
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#file).catch(async (error) => {
      await rm(draft, { force: true });
      throw error;
    });
    return bytes;
  }
}

function keptOf(read: unknown): KeptStep | KeptText {
  const { step, atMs, series, name, text, endsAtMs } = read as Record<string, unknown>;
  if (typeof name === "string" && typeof text === "string" && Number.isSafeInteger(endsAtMs)) {
    return { name, text, endsAtMs: endsAtMs as number };
  }
  if (typeof step === "string" && Object.hasOwn(steps, step) && Number.isSafeInteger(atMs) && isTexts(series)) {
    return { step: step as Step, atMs: atMs as number, series: new Map(Object.entries(series)) };
  }
  throw new Error(`${FILE} has a line that is neither a step nor a text`);
}

function isTexts(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
}
