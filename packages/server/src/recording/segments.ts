/**
 * The files of a recording: gzip segments in one folder, bounded in bytes, number and age; the oldest are deleted first.
 *
 * Backpressure: lines wait in a queue bounded in bytes. If the disk is slower than the traffic, full or gone, lines are dropped, counted,
 * and marked in the file; checks never wait. After a failure a new segment is tried every few seconds.
 * Crash-safe: each block is its own gzip member, appended in one write, so a crash tears at most the last block.
 */
import { type FileHandle, open, readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Log } from "../log.js";

export const SEGMENT_NAME = /^sluice-.*\.jsonl\.gz$/;

interface SegmentsOptions {
  readonly folder: string;
  /** Creates the folder, and throws if it cannot be written to. */
  readonly makeFolder: () => void;
  readonly instance: string;
  /** Of all segments in the folder. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** Delay after a failure before a new segment is tried. */
  readonly retryAfterMs?: number;
  readonly log: Log;
}

/** Lines that are serialised when they are written: a rule set may have a hundred thousand. */
interface ManyLines {
  readonly next: () => string | undefined;
}

interface Head {
  readonly head: string;
  readonly number: number;
}

type Queued = string | ManyLines | Head;

const MOST_QUEUED_BYTES = 8 * 2 ** 20;
const BLOCK_BYTES = 256 * 1024;
const WRITE_EVERY_MS = 1_000;
const RETRY_AFTER_MS = 5_000;
const LONGEST_SEGMENT_MS = 3_600_000;
const LARGEST_SEGMENT = 64 * 2 ** 20;
const MOST_FILES = 1_000;
const TIDY_EVERY_MS = 600_000;

/** A third of the default level's time, for a tenth more bytes. */
const PACK_LEVEL = 3;

const pack = promisify(gzip);

export class Segments {
  readonly counts = { lines: 0, dropped: 0, bytes: 0, failures: 0 };
  readonly #options: SegmentsOptions;
  readonly #segmentBytes: number;
  #queue: Queued[] = [];
  #queuedBytes = 0;
  /** Lines dropped since the last one that was accepted. */
  #lost = 0;
  /** For the segment that lines are being added to. */
  #addedBytes = 0;
  #beganMonotonicMs = 0;
  #isBegun = false;
  #begun = 0;
  #retryAtMonotonicMs = 0;
  #file: { handle: FileHandle; name: string } | undefined;
  #writing: Promise<void> | undefined;
  #hasFailed = false;
  readonly #timers: NodeJS.Timeout[];

  constructor(options: SegmentsOptions) {
    this.#options = options;
    this.#segmentBytes = Math.min(LARGEST_SEGMENT, Math.floor(options.maxBytes / 16));
    this.#timers = [
      setInterval(() => void this.write(), WRITE_EVERY_MS).unref(),
      setInterval(() => void this.#deleteOld(), TIDY_EVERY_MS).unref(),
    ];
  }

  /** Whether lines can be accepted now: not for a while after a failure. Counts a line that cannot. */
  get isOpen(): boolean {
    if (this.#retryAtMonotonicMs === 0 || performance.now() >= this.#retryAtMonotonicMs) return true;
    this.#lose(1);
    return false;
  }

  /** Whether the next line starts a segment. */
  get needsHead(): boolean {
    return (
      !this.#isBegun ||
      this.#addedBytes > this.#segmentBytes ||
      performance.now() - this.#beganMonotonicMs > LONGEST_SEGMENT_MS
    );
  }

  begin(head: string): void {
    this.#isBegun = true;
    this.#beganMonotonicMs = performance.now();
    this.#addedBytes = 0;
    this.#queue.push({ head, number: ++this.#begun });
  }

  add(line: string): void {
    if (this.#queuedBytes + line.length > MOST_QUEUED_BYTES) {
      this.#lose(1);
      return;
    }
    this.#markLost();
    this.#queue.push(line);
    this.#queuedBytes += line.length;
    this.#addedBytes += line.length;
    if (this.#queuedBytes >= BLOCK_BYTES) void this.write();
  }

  /** Never dropped for lack of room: without its rules a segment is useless. */
  addEach<T>(items: readonly T[], spell: (item: T) => string): void {
    let at = 0;
    this.#queue.push({ next: () => (at < items.length ? spell(items[at++]!) : undefined) });
  }

  #markLost(): void {
    if (this.#lost > 0) this.#queue.push(JSON.stringify({ dropped: this.#lost }));
    this.#lost = 0;
  }

  #lose(lines: number): void {
    this.#lost += lines;
    this.counts.dropped += lines;
  }

  /** Writes the queue; one write at a time. */
  write(): Promise<void> {
    if (this.#queue.length === 0) return this.#writing ?? Promise.resolve();
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        const next = this.#queue[0]!;
        if (isHead(next)) await this.#openNext(next);
        else await this.#append(this.#takeBlock());
      }
      if (this.#hasFailed) this.#options.log.info("decisions are recorded again", { folder: this.#options.folder });
      this.#hasFailed = false;
    } catch (error) {
      await this.#failed(error as Error);
    }
  }

  async #openNext({ head, number }: Head): Promise<void> {
    await this.#closeFile();
    const { folder, instance, makeFolder } = this.#options;
    makeFolder();
    const time = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
    const name = `sluice-${time}-${instance.replace(/[^\w.-]/g, "_")}-${number}.jsonl.gz`;
    this.#file = { handle: await open(join(folder, name), "wx", 0o600), name };
    this.#queue[0] = head;
    await this.#deleteOld();
  }

  /** Takes lines of one segment, up to the size of a block. */
  #takeBlock(): string {
    const lines: string[] = [];
    let bytes = 0;
    let at = 0;
    for (; at < this.#queue.length && bytes < BLOCK_BYTES; at++) {
      const next = this.#queue[at]!;
      if (typeof next === "string") {
        lines.push(next);
        bytes += next.length;
        this.#queuedBytes -= next.length;
        continue;
      }
      if (isHead(next)) break;
      for (let line = next.next(); line !== undefined; line = bytes < BLOCK_BYTES ? next.next() : undefined) {
        lines.push(line);
        bytes += line.length;
      }
      // The rest starts the next block.
      if (bytes >= BLOCK_BYTES) break;
    }
    this.#queuedBytes = Math.max(0, this.#queuedBytes);
    this.#queue = this.#queue.slice(at);
    this.counts.lines += lines.length;
    return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
  }

  async #append(text: string): Promise<void> {
    if (text === "" || this.#file === undefined) return;
    const { handle, name } = this.#file;
    const block = await pack(text, { level: PACK_LEVEL });
    await handle.appendFile(block);
    this.counts.bytes += block.length;
    // A deleted file can still be written to, but will never be read.
    if ((await handle.stat()).nlink === 0) throw new Error(`${name} was removed`);
  }

  /** The queue belongs to a segment that cannot be written: it is lost. */
  async #failed({ message }: Error): Promise<void> {
    const { folder, log, retryAfterMs = RETRY_AFTER_MS } = this.#options;
    this.counts.failures++;
    this.#lose(this.#queue.length);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#isBegun = false;
    this.#retryAtMonotonicMs = performance.now() + retryAfterMs;
    if (!this.#hasFailed) log.error("decisions cannot be recorded; checks go on", { folder, error: message });
    this.#hasFailed = true;
    await this.#file?.handle.close().catch(() => undefined);
    this.#file = undefined;
  }

  async #closeFile(): Promise<void> {
    if (this.#file === undefined) return;
    await this.#append(`${JSON.stringify({ end: true })}\n`);
    await this.#file.handle.close();
    this.#file = undefined;
  }

  /** Deletes the oldest by modification time: segments being written by other instances are the youngest. */
  async #deleteOld(): Promise<void> {
    const { folder, maxBytes, maxAgeMs, log } = this.#options;
    try {
      const names = (await readdir(folder)).filter((name) => SEGMENT_NAME.test(name) && name !== this.#file?.name);
      const files = await Promise.all(
        names.map(async (name) => {
          const { size, mtimeMs } = await stat(join(folder, name));
          return { name, size, mtimeMs };
        }),
      );
      files.sort((a, b) => a.mtimeMs - b.mtimeMs);
      let bytes = files.reduce((sum, { size }) => sum + size, 0) + this.#segmentBytes;
      let count = files.length + 1;
      for (const { name, size, mtimeMs } of files) {
        if (bytes <= maxBytes && count <= MOST_FILES && Date.now() - mtimeMs <= maxAgeMs) break;
        await unlink(join(folder, name));
        bytes -= size;
        count--;
      }
    } catch (error) {
      // Another instance may have deleted the same file; the next run finds the rest.
      log.debug("old recordings could not be deleted", { folder, error: (error as Error).message });
    }
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.write();
    if (this.#isBegun) this.#markLost();
    await this.write();
    await this.#closeFile().catch((error: Error) => this.#failed(error));
  }
}

function isHead(queued: Queued): queued is Head {
  return typeof queued === "object" && "head" in queued;
}
