/**
 * Reads a template's lines as bytes: a repeated value is not decoded again. Anything unusual (a backslash in a quoted or wanted value, a
 * non-ASCII byte in a wanted one, a line that does not match) is left to the text reader. Linear in the line.
 */
import { addressEnd, decimalIn, epochIn, LastTime } from "./byte-values.js";
import { LogMemos, type RequestLine, withoutPort } from "./log-request.js";
import type { Template } from "./template.js";
import { durationIn, MOST_DURATION, type Pieces, type TemplateRoles, timeVariables } from "./template-roles.js";

const NEW_LINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const DASH = 0x2d;
const NOTHING: Buffer = Buffer.alloc(0);

interface BytePart {
  /** The fixed text after the value. */
  readonly until: Uint8Array;
  readonly isQuoted: boolean;
  /** By byte: 1 if it belongs to the value and needs no further checks. One comparison per byte: this dominates the reading. */
  readonly passes: Uint8Array;
}

export class TemplateBytes implements Pieces {
  readonly #start: Uint8Array;
  readonly #parts: readonly BytePart[];
  readonly #isOpen: boolean;
  readonly #roles: TemplateRoles;
  readonly #memos: LogMemos;
  readonly #time: LastTime | undefined;
  #bytes = NOTHING;
  /** By variable, for the line split last. */
  readonly #starts: number[];
  readonly #ends: number[];

  constructor(
    { start, parts }: Template,
    roles: TemplateRoles,
    { isOpen, memos = new LogMemos() }: { isOpen: boolean; memos: LogMemos | undefined },
  ) {
    this.#start = Buffer.from(start);
    this.#isOpen = isOpen;
    this.#roles = roles;
    this.#memos = memos;
    this.#parts = parts.map(({ until, isQuoted }, i) => {
      // The last value of an open template is a single word.
      const behind = Buffer.from(until === "" && isOpen ? " " : until);
      return { until: Buffer.from(until), isQuoted, passes: passesOf(behind[0], isQuoted, roles.isWanted[i]!) };
    });
    const { timeVariable } = roles;
    this.#time = timeVariable === "msec" ? undefined : new LastTime(timeVariables[timeVariable]!);
    this.#starts = parts.map(() => 0);
    this.#ends = parts.map(() => 0);
  }

  /** The byte at `end` must not belong to a line: a line end, or nothing. False: read the line as text. */
  split(bytes: Buffer, from: number, end: number): boolean {
    if (!isAt(bytes, from, end, this.#start)) return false;
    this.#bytes = bytes;
    const parts = this.#parts;
    const last = parts.length - 1;
    let at = from + this.#start.length;
    for (let i = 0; i <= last; i++) {
      const { until, isQuoted, passes } = parts[i]!;
      this.#starts[i] = at;
      for (;;) {
        while (passes[bytes[at]!] === 1) at++;
        if (at < end && isAt(bytes, at, end, until)) {
          // Without fixed text after it, a value ends at a space or with the line.
          if (until.length > 0 || bytes[at] === SPACE) break;
          return false;
        }
        if (at >= end) {
          if (isQuoted || i !== last || (!this.#isOpen && until.length > 0)) return false;
          at = end;
          break;
        }
        // Only the first byte of the fixed text matched, not the rest.
        if (isQuoted || until.length < 2 || bytes[at] !== until[0]) return false;
        at++;
      }
      this.#ends[i] = at;
      at += until.length;
    }
    return this.#isOpen || at >= end;
  }

  timeMs(): number | undefined {
    const { timeAt } = this.#roles;
    const from = this.#starts[timeAt]!;
    const end = this.#ends[timeAt]!;
    const ms = this.#time === undefined ? epochIn(this.#bytes, from, end) : this.#time.read(this.#bytes, from, end);
    return Number.isNaN(ms) ? undefined : ms;
  }

  requestLine(at: number): RequestLine | undefined {
    return this.#memos.requests.get(this.#bytes, this.#starts[at]!, this.#ends[at]!);
  }

  value(at: number): string | undefined {
    return this.#hasValue(at) ? this.#memos.texts.get(this.#bytes, this.#starts[at]!, this.#ends[at]!) : undefined;
  }

  rareValue(at: number): string | undefined {
    return this.#hasValue(at) ? this.#memos.rare.get(this.#bytes, this.#starts[at]!, this.#ends[at]!) : undefined;
  }

  #hasValue(at: number): boolean {
    if (at < 0) return false;
    const from = this.#starts[at]!;
    const length = this.#ends[at]! - from;
    return length > 1 || (length === 1 && this.#bytes[from] !== DASH);
  }

  peer(at: number): string | undefined {
    if (!this.#hasValue(at)) return undefined;
    const from = this.#starts[at]!;
    const end = addressEnd(this.#bytes, from, this.#ends[at]!);
    return end < 0 ? withoutPort(this.rareValue(at)) : this.#memos.texts.get(this.#bytes, from, end);
  }

  durationMs(at: number, scale: number): number | undefined {
    if (!this.#hasValue(at)) return undefined;
    const bytes = this.#bytes;
    const from = this.#starts[at]!;
    const end = this.#ends[at]!;
    const isMs = end - from > 2 && bytes[end - 1] === 0x73 && bytes[end - 2] === 0x6d;
    const plain = decimalIn(bytes, from, isMs ? end - 2 : end);
    // Not cached: anything but a plain number rarely repeats.
    const number = plain < MOST_DURATION ? plain : durationIn(bytes.toString("latin1", from, end));
    return number === undefined ? undefined : number * scale;
  }
}

function passesOf(stop: number | undefined, isQuoted: boolean, isWanted: boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => {
    if (code === NEW_LINE || code === stop || (isQuoted && code === QUOTE)) return 0;
    if (code === BACKSLASH) return isQuoted || isWanted ? 0 : 1;
    return code < 0x80 || !isWanted ? 1 : 0;
  });
}

function isAt(bytes: Uint8Array, at: number, end: number, wanted: Uint8Array): boolean {
  if (at + wanted.length > end) return false;
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}
