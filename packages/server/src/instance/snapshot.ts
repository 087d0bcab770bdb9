/**
 * A snapshot of in-memory state in the data folder, to survive restarts: loaded at startup, saved every ten seconds while it changes, and
 * on shutdown. One line of JSON per part; the file is replaced atomically.
 * The last line holds the number of lines, so that a truncated file is detected.
 */
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Log } from "../log.js";

interface SnapshotOptions {
  readonly folder: string;
  readonly file: string;
  /** The file in which older versions kept these lines, among others; read if `file` does not exist. */
  readonly earlierFile?: string;
  /** Name of the state in logs: `the monitoring history`. */
  readonly title: string;
  readonly log: Log;
  /** Loads one line into the state; throws if it is damaged. */
  readonly load: (line: unknown) => void;
  /** Discards lines loaded before a damaged one. */
  readonly clear: () => void;
  /** The whole state. Consumed slowly: the state may change meanwhile. */
  readonly lines: () => Iterable<object>;
}

const SAVE_EVERY_MS = 10_000;
/** Large states are saved less often, so that saving takes no more than this rate of disk and event loop. */
const SAVED_BYTES_PER_MS = 1_000;
const LINES_PER_TURN = 16;
/** A larger file cannot be ours, and must not be read into memory. */
const LARGEST_BYTES = 512 * 1024 * 1024;
const LAYOUT = 1;

export class Snapshot {
  readonly #options: SnapshotOptions;
  readonly #path: string;
  #timer: NodeJS.Timeout | undefined;
  #isChanged = false;
  #lastSave: Promise<number> = Promise.resolve(0);

  static async open(options: SnapshotOptions): Promise<Snapshot> {
    const snapshot = new Snapshot(options);
    await snapshot.#load();
    snapshot.#saveLater(SAVE_EVERY_MS);
    return snapshot;
  }

  private constructor(options: SnapshotOptions) {
    this.#options = options;
    this.#path = join(options.folder, options.file);
  }

  changed(): void {
    this.#isChanged = true;
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#save();
  }

  async #load(): Promise<void> {
    const { title, log, load, clear } = this.#options;
    try {
      for await (const line of this.#read()) load(line);
    } catch (error) {
      clear();
      log.warn(`${title} cannot be read and begins anew`, { error: String(error) });
    }
  }

  /** Yields nothing if there is no file; throws if it is damaged. */
  async *#read(): AsyncGenerator<unknown> {
    const { folder, earlierFile } = this.#options;
    const candidates = [this.#path, ...(earlierFile === undefined ? [] : [join(folder, earlierFile)])];
    for (const path of candidates) {
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined) return yield* this.#readFile(path, found.size);
    }
  }

  async *#readFile(path: string, size: number): AsyncGenerator<unknown> {
    const { file } = this.#options;
    if (size > LARGEST_BYTES) throw new Error(`${file} has ${size} bytes`);
    let lines = 0;
    let end: number | undefined;
    const input = createReadStream(path);
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      const read = JSON.parse(line) as { layout?: unknown; end?: number };
      if (lines === 0 && read.layout !== LAYOUT) throw new Error(`${file} has another layout`);
      if (lines > 0 && end === undefined) {
        end = read.end;
        if (end === undefined) yield read;
      }
      lines++;
    }
    if (end === undefined || end !== lines - 2) throw new Error(`${file} is cut off after ${lines} lines`);
  }

  #saveLater(waitMs: number): void {
    this.#timer = setTimeout(async () => {
      const bytes = await this.#save();
      this.#saveLater(Math.max(SAVE_EVERY_MS, bytes / SAVED_BYTES_PER_MS));
    }, waitMs);
    this.#timer.unref();
  }

  /** Serialised, so that the last save is the one that stays on disk. Resolves with the number of bytes. */
  #save(): Promise<number> {
    this.#lastSave = this.#lastSave.then(() => this.#saveChanges());
    return this.#lastSave;
  }

  async #saveChanges(): Promise<number> {
    if (!this.#isChanged) return 0;
    this.#isChanged = false;
    try {
      return await this.#write();
    } catch (error) {
      this.#isChanged = true;
      this.#options.log.warn(`${this.#options.title} could not be saved`, { error: String(error) });
      return 0;
    }
  }

  async #write(): Promise<number> {
    await mkdir(this.#options.folder, { recursive: true });
    const draft = `${this.#path}.${process.pid}`;
    const file = await open(draft, "w", 0o600);
    let bytes = 0;
    let lines = 0;
    const writeLine = async (value: object): Promise<void> => {
      const { bytesWritten } = await file.write(`${JSON.stringify(value)}\n`);
      bytes += bytesWritten;
    };
    try {
      await writeLine({ layout: LAYOUT });
      for (const line of this.#options.lines()) {
        await writeLine(line);
        // Yield to the event loop, so that checks are answered in between.
        if (++lines % LINES_PER_TURN === 0) await nextTurn();
      }
      await writeLine({ end: lines });
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, this.#path).catch(async (error) => {
      await rm(draft, { force: true });
      throw error;
    });
    return bytes;
  }
}
