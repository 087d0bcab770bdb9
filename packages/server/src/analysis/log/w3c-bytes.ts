/**
 * Reads lines of a W3C extended log as bytes, if only the standard columns are wanted. Anything unusual is left to the text reader:
 * comments, a non-ASCII byte in a column that is read, headers or user-defined fields, a mistake.
 */
import { decimalIn, LastTime } from "./byte-values.js";
import { LogMemos, type LogRequest, type Target } from "./log-request.js";
import { parseIsoTime } from "./log-time.js";
import type { Columns } from "./w3c-columns.js";

const NEW_LINE = 0x0a;
const TAB = 0x09;
const SPACE = 0x20;
const DASH = 0x2d;
const HASH = 0x23;
const QUESTION_MARK = 0x3f;
const UPPER_T = 0x54;
const MOST_DURATION = 1e9;
/** A log with more columns before those that are read is left to the text reader. */
const MOST_COLUMNS = 256;
/** As are longer values. */
const SCRATCH_BYTES = 2 ** 12;
const NOTHING: Buffer = Buffer.alloc(0);

export class W3cBytes {
  readonly #memos: LogMemos;
  readonly #time = new LastTime(parseIsoTime);
  /** By column, for the line split last. */
  readonly #starts = new Array<number>(MOST_COLUMNS).fill(0);
  readonly #ends = new Array<number>(MOST_COLUMNS).fill(0);
  /** The number of columns. */
  #count = 0;
  readonly #scratch = Buffer.alloc(2 * SCRATCH_BYTES + 1);
  #bytes = NOTHING;
  #columns: Columns | undefined;
  /** Index after the last column that is read; 0 if lines cannot be read as bytes. */
  #most = 0;
  /** By column. */
  #isRead: readonly boolean[] = [];

  constructor(memos = new LogMemos()) {
    this.#memos = memos;
  }

  set columns(columns: Columns) {
    const { date, time, path, query, method, hosts, peer, taken, headers, fields } = columns;
    const read = [date, time, path, query, method, ...hosts, peer, taken];
    const most = Math.max(...read) + 1;
    this.#columns = columns;
    this.#most = headers.length > 0 || fields.length > 0 || most > MOST_COLUMNS ? 0 : most;
    this.#isRead = Array.from({ length: most }, (_, at) => read.includes(at));
  }

  read(bytes: Buffer, from: number, end: number): LogRequest | undefined {
    if (this.#most === 0 || from >= end || bytes[from] === HASH) return undefined;
    if (!this.#split(bytes, from, end)) return undefined;
    const { date, time, path, query, method, hosts, peer, taken, isCloudFront } = this.#columns!;
    const endMs = this.#timeMs(date, time);
    if (Number.isNaN(endMs) || !this.#hasValue(path)) return undefined;
    const target = this.#target(path, query);
    if (target === undefined) return undefined;
    const durationMs = this.#durationMs(taken, isCloudFront ? 1_000 : 1);
    return {
      atMs: endMs - (durationMs ?? 0),
      durationMs,
      method: this.#value(method) ?? "GET",
      target: target.text,
      host: this.#value(hosts[0]!) ?? this.#value(hosts[1]!) ?? this.#value(hosts[2]!),
      peer: this.#value(peer),
      headers: NONE,
      fields: NO_FIELDS,
      memo: target,
    };
  }

  /** Columns are separated by tabs, or by spaces if the line has no tab. */
  #split(bytes: Buffer, from: number, end: number): boolean {
    this.#bytes = bytes;
    if (!this.#splitAt(TAB, from, end)) return false;
    return this.#count > 1 || this.#splitAt(SPACE, from, end);
  }

  #splitAt(separator: number, from: number, end: number): boolean {
    const bytes = this.#bytes;
    const passes = separator === TAB ? passesTab : passesSpace;
    let count = 0;
    let at = from;
    while (count < this.#most) {
      this.#starts[count] = at;
      while (passes[bytes[at]!] === 1) at++;
      if (bytes[at]! >= 0x80) {
        while (at < end && bytes[at] !== separator) at++;
        // The whole line without a tab is no column: split at spaces instead.
        const isLine = separator === TAB && count === 0 && at >= end;
        if (this.#isRead[count] && !isLine) return false;
      }
      this.#ends[count++] = Math.min(at, end);
      if (at >= end) break;
      at++;
    }
    this.#count = count;
    return true;
  }

  #hasValue(at: number): boolean {
    if (at < 0 || at >= this.#count) return false;
    const from = this.#starts[at]!;
    const length = this.#ends[at]! - from;
    return length > 1 || (length === 1 && this.#bytes[from] !== DASH);
  }

  #value(at: number): string | undefined {
    return this.#hasValue(at) ? this.#memos.texts.get(this.#bytes, this.#starts[at]!, this.#ends[at]!) : undefined;
  }

  #timeMs(date: number, time: number): number {
    if (!this.#hasValue(date) || !this.#hasValue(time)) return Number.NaN;
    const length = this.#put(date, 0);
    if (length < 0) return Number.NaN;
    this.#scratch[length] = UPPER_T;
    const behind = this.#put(time, length + 1);
    return behind < 0 ? Number.NaN : this.#time.read(this.#scratch, 0, behind);
  }

  #target(path: number, query: number): Target | undefined {
    const { targets } = this.#memos;
    if (!this.#hasValue(query)) return targets.get(this.#bytes, this.#starts[path]!, this.#ends[path]!);
    const length = this.#put(path, 0);
    if (length < 0) return undefined;
    this.#scratch[length] = QUESTION_MARK;
    const behind = this.#put(query, length + 1);
    return behind < 0 ? undefined : targets.get(this.#scratch, 0, behind);
  }

  /** Copies a column; returns the position after it, or -1 if it is too long. */
  #put(column: number, to: number): number {
    const from = this.#starts[column]!;
    const length = this.#ends[column]! - from;
    if (length > SCRATCH_BYTES) return -1;
    const bytes = this.#bytes;
    const scratch = this.#scratch;
    for (let i = 0; i < length; i++) scratch[to + i] = bytes[from + i]!;
    return to + length;
  }

  #durationMs(at: number, scale: number): number | undefined {
    if (!this.#hasValue(at)) return undefined;
    const from = this.#starts[at]!;
    const end = this.#ends[at]!;
    const plain = decimalIn(this.#bytes, from, end);
    const number = Number.isNaN(plain) ? Number(this.#bytes.toString("latin1", from, end)) : plain;
    return number >= 0 && number < MOST_DURATION ? number * scale : undefined;
  }
}

const passesTab = passesOf(TAB);
const passesSpace = passesOf(SPACE);

/** By byte: 1 if it is ASCII inside a column. */
function passesOf(separator: number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) =>
    code < 0x80 && code !== separator && code !== NEW_LINE ? 1 : 0,
  );
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_FIELDS: readonly undefined[] = [];
