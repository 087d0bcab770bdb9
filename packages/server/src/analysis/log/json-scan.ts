/**
 * Scans a line of JSON as bytes, without creating its objects: unwanted names are skipped, the values of the others are reported.
 * In: a line, and the names to look for. Out: true if the line is an object and everything was reported; false for anything unusual (a
 * non-ASCII byte, a duplicate or escaped name, deep nesting, a syntax error): the caller then uses `JSON.parse`, which is authoritative.
 * Whatever it accepts is valid JSON, with the values that `JSON.parse` finds (`json-scan.test.ts` compares them on mutated lines). Linear
 * in the line.
 *
 * The lines of a log are similar: predictions from earlier ones (`json-members.ts`) are compared four bytes at a time, and only the rest is
 * scanned byte by byte. Every byte is examined one way or the other, so a syntax error is always found.
 */
import { decimalIn, isDigit } from "./byte-values.js";
import { LastView, WORD } from "./byte-words.js";
import { isAt, JsonLevel, type JsonMember, type ScanName } from "./json-members.js";

/** Stands for an object or a list, whose contents are not kept. */
const SOMETHING: object = Object.freeze({});

interface ScanOptions<T> {
  readonly names: ReadonlyMap<string, ScanName<T>>;
  readonly report: (role: T, value: unknown) => void;
  /** Whether the value still matters, given those already reported. */
  readonly isWanted: (role: T) => boolean;
  /** Converts a piece of ASCII without escapes. The result may be reported again where the same text recurs. */
  readonly textOf: (role: T, bytes: Buffer, from: number, end: number) => unknown;
}

const MOST_DEPTH = 32;
/** Shorter strings are faster byte by byte. */
const LONG_STRING = 16;
const NO = -1;
const NOTHING: Buffer = Buffer.alloc(0);

export class JsonScan<T> {
  readonly #names: JsonLevel<T>;
  readonly #options: ScanOptions<T>;
  readonly #views = new LastView();
  #bytes = NOTHING;
  #view = this.#views.of(NOTHING);
  #lines = 0;
  /** Whether the string just read contains an escape. */
  #isEscaped = false;

  constructor(options: ScanOptions<T>) {
    this.#names = new JsonLevel(options.names);
    this.#options = options;
  }

  /** The byte at `end` must not belong to a value: a line end, or nothing. */
  scan(bytes: Buffer, from: number, end: number): boolean {
    if (from >= end || bytes[from] !== OPEN_OBJECT) return false;
    this.#bytes = bytes;
    this.#view = this.#views.of(bytes);
    this.#lines++;
    const behind = this.#object(from + 1, this.#names, 1);
    return behind !== NO && behind <= end && afterSpace(bytes, behind) >= end;
  }

  /** Scans an object with wanted names, from after its brace; returns the position after it. */
  #object(from: number, level: JsonLevel<T>, depth: number): number {
    const bytes = this.#bytes;
    let at = afterSpace(bytes, from);
    if (bytes[at] === CLOSE_OBJECT) return at + 1;
    let before: JsonLevel<T> | JsonMember<T> = level;
    for (;;) {
      const expected: JsonMember<T> | undefined = before.next;
      if (expected?.whole.isAt(this.#view, at) === true) {
        if (!expected.isFirstIn(this.#lines)) return NO;
        if (expected.role !== undefined) this.#options.report(expected.role, expected.value);
        before = expected;
        // Excludes the byte after the value.
        at += expected.whole.length - 1;
      } else {
        let member: JsonMember<T> | undefined = expected;
        let valueAt: number;
        if (member?.spelled.isAt(this.#view, at) === true) valueAt = afterSpace(bytes, at + member.spelled.length);
        else {
          const end = this.#nameEnd(at);
          if (end === NO) return NO;
          member = level.find(bytes, at + 1, end);
          valueAt = behindColon(bytes, end + 1);
          if (valueAt === NO) return NO;
        }
        if (member === undefined) at = this.#skip(valueAt, depth);
        else {
          before.next = member;
          before = member;
          at = this.#value(at, valueAt, member, depth);
        }
        if (at === NO) return NO;
        at = afterSpace(bytes, at);
      }
      if (bytes[at] === CLOSE_OBJECT) return at + 1;
      if (bytes[at] !== COMMA) return NO;
      at = afterSpace(bytes, at + 1);
    }
  }

  /** The position of a name's closing quote. An escaped name could be any name. */
  #nameEnd(at: number): number {
    if (this.#bytes[at] !== QUOTE) return NO;
    const end = this.#stringEnd(at + 1);
    return this.#isEscaped ? NO : end;
  }

  #value(nameAt: number, at: number, member: JsonMember<T>, depth: number): number {
    // With duplicates the last value would count, so leave them to JSON.parse.
    if (!member.isFirstIn(this.#lines)) return NO;
    const bytes = this.#bytes;
    const { role, inner } = member;
    const { report, textOf, isWanted } = this.#options;
    const first = bytes[at];
    if (first === OPEN_OBJECT && inner !== undefined) {
      if (role !== undefined) report(role, SOMETHING);
      return this.#object(at + 1, inner, depth + 1);
    }
    const end = this.#skip(at, depth);
    if (end === NO) return NO;
    let value: unknown;
    if (role !== undefined) {
      if (first === QUOTE) {
        if (!isWanted(role)) return end;
        value = this.#isEscaped ? JSON.parse(bytes.toString("latin1", at, end)) : textOf(role, bytes, at + 1, end - 1);
      } else value = first === OPEN_OBJECT || first === OPEN_LIST ? SOMETHING : plainValue(bytes, at, end);
      report(role, value);
    }
    if (bytes[end] === COMMA || bytes[end] === CLOSE_OBJECT)
      member.learn(this.#view, nameAt, end + 1, value, this.#lines);
    return end;
  }

  /** The position after the value. */
  #skip(at: number, depth: number): number {
    const bytes = this.#bytes;
    switch (bytes[at]) {
      case QUOTE: {
        const end = this.#stringEnd(at + 1);
        return end === NO ? NO : end + 1;
      }
      case OPEN_OBJECT:
      case OPEN_LIST:
        return this.#skipNested(at, depth);
      case 0x74:
        return isAt(bytes, at, TRUE) ? at + 4 : NO;
      case 0x66:
        return isAt(bytes, at, FALSE) ? at + 5 : NO;
      case 0x6e:
        return isAt(bytes, at, NULL) ? at + 4 : NO;
      default:
        return numberEnd(bytes, at);
    }
  }

  /** Skips an object or a list with its contents. `depth`: of its parent. */
  #skipNested(from: number, depth: number): number {
    const bytes = this.#bytes;
    // The open containers as bits, the innermost lowest: 1 for an object.
    let kinds = 0;
    let open = 0;
    let at = from;
    for (;;) {
      const first = bytes[at];
      if (first === OPEN_OBJECT || first === OPEN_LIST) {
        if (depth + ++open > MOST_DEPTH) return NO;
        kinds = (kinds << 1) | (first === OPEN_OBJECT ? 1 : 0);
        at = afterSpace(bytes, at + 1);
        if (bytes[at] !== closing(kinds)) {
          if (first === OPEN_OBJECT) at = this.#skipName(at);
          if (at === NO) return NO;
          continue;
        }
      } else {
        at = this.#skip(at, depth);
        if (at === NO) return NO;
        at = afterSpace(bytes, at);
      }
      while (bytes[at] === closing(kinds)) {
        at++;
        kinds >>>= 1;
        if (--open === 0) return at;
        at = afterSpace(bytes, at);
      }
      if (bytes[at] !== COMMA) return NO;
      at = afterSpace(bytes, at + 1);
      if ((kinds & 1) === 1) at = this.#skipName(at);
      if (at === NO) return NO;
    }
  }

  /** Skips an unwanted name and its colon. */
  #skipName(at: number): number {
    if (this.#bytes[at] !== QUOTE) return NO;
    const end = this.#stringEnd(at + 1);
    return end === NO ? NO : behindColon(this.#bytes, end + 1);
  }

  /** The position of the closing quote. Control characters, including line ends, are not allowed in a string. */
  #stringEnd(from: number): number {
    const bytes = this.#bytes;
    this.#isEscaped = false;
    let at = from;
    const near = from + LONG_STRING;
    for (;;) {
      while (isPlain[bytes[at]!] === 1) if (++at === near) at = afterPlainWords(this.#view, at);
      if (bytes[at] === QUOTE) return at;
      const length = bytes[at] === BACKSLASH ? escapeLength(bytes, at) : NO;
      if (length === NO) return NO;
      this.#isEscaped = true;
      at += length;
    }
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
/** By byte: ASCII that represents itself in a string. */
const isPlain = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 0x20 && code <= 0x7f && code !== QUOTE && code !== BACKSLASH ? 1 : 0,
);
/** The same, in each byte of a word. */
const QUOTES = 0x22222222;
const BACKSLASHES = 0x5c5c5c5c;
const SPACES = 0x20202020;
const ONES = 0x01010101;
const HIGH_BITS = 0x80808080 | 0;
const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
const NULL = Buffer.from("null");
const ESCAPES = Buffer.from('"\\/bfnrt');

/** Skips words in which every byte represents itself (SWAR): a subtraction sets the high bit of each byte that it takes below zero. */
function afterPlainWords(view: DataView, from: number): number {
  const last = view.byteLength - WORD;
  let at = from;
  while (at <= last) {
    const word = view.getInt32(at, true);
    const quotes = word ^ QUOTES;
    const backslashes = word ^ BACKSLASHES;
    // Below the space or non-ASCII; a quote; a backslash. A borrow may also mark a plain byte, but only in a word with a special one.
    const marks = (word - SPACES) | word | ((quotes - ONES) & ~quotes) | ((backslashes - ONES) & ~backslashes);
    if ((marks & HIGH_BITS) !== 0) return at;
    at += WORD;
  }
  return at;
}

/** The closing byte of the innermost container. */
function closing(kinds: number): number {
  return (kinds & 1) === 1 ? CLOSE_OBJECT : CLOSE_LIST;
}

/** Skips the colon and surrounding space after a name. */
function behindColon(bytes: Buffer, from: number): number {
  const at = afterSpace(bytes, from);
  return bytes[at] === COLON ? afterSpace(bytes, at + 1) : NO;
}

/** Space, tab, line feed and carriage return (RFC 8259, section 2); but a line ends at its line feed, so that is not skipped. */
function afterSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at]! <= 0x20 && (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d)) at++;
  return at;
}

function afterDigits(bytes: Buffer, from: number): number {
  let at = from;
  while (isDigit(bytes[at])) at++;
  return at;
}

/** RFC 8259, section 6: no leading zeros, digits on both sides of the point. */
function numberEnd(bytes: Buffer, from: number): number {
  let at = bytes[from] === 0x2d ? from + 1 : from;
  if (!isDigit(bytes[at])) return NO;
  at = bytes[at] === 0x30 ? at + 1 : afterDigits(bytes, at + 1);
  if (bytes[at] === 0x2e) {
    if (!isDigit(bytes[at + 1])) return NO;
    at = afterDigits(bytes, at + 2);
  }
  if (bytes[at] !== 0x65 && bytes[at] !== 0x45) return at;
  at += bytes[at + 1] === 0x2b || bytes[at + 1] === 0x2d ? 2 : 1;
  return isDigit(bytes[at]) ? afterDigits(bytes, at + 1) : NO;
}

function plainValue(bytes: Buffer, at: number, end: number): unknown {
  switch (bytes[at]) {
    case 0x74:
      return true;
    case 0x66:
      return false;
    case 0x6e:
      return null;
    default:
      return numberIn(bytes, at, end);
  }
}

function numberIn(bytes: Buffer, at: number, end: number): number {
  const number = decimalIn(bytes, at, end);
  return Number.isNaN(number) ? Number(bytes.toString("latin1", at, end)) : number;
}

function escapeLength(bytes: Buffer, at: number): number {
  const code = bytes[at + 1];
  if (code !== 0x75) return code !== undefined && ESCAPES.includes(code) ? 2 : NO;
  for (let i = at + 2; i < at + 6; i++) {
    const hex = (bytes[i] ?? 0) | 0x20;
    if (!isDigit(bytes[i]) && !(hex >= 0x61 && hex <= 0x66)) return NO;
  }
  return 6;
}
