/**
 * Walks a line of JSON as bytes, without making its objects: names that nobody asked for are passed over, of the others the values are reported.
 * In: a line, and the names to look for. Out: true if the line is an object and all was reported; false for everything unusual (a byte
 * beyond ASCII, a name twice, an escaped name, deep nesting, a mistake): the caller then asks `JSON.parse`, whose word counts.
 * What it accepts is JSON, with the values that `JSON.parse` finds (`json-scan.test.ts` compares them on mutated lines). Linear in the line.
 */
import { decimalIn, isDigit } from "./byte-values.js";

/** A name to look for. `T`: what it stands for; absent where only names inside it do. */
interface ScanName<T> {
  readonly role?: T;
  readonly inner?: ReadonlyMap<string, ScanName<T>> | undefined;
}

/** An object or a list: what it holds is not kept. */
const SOMETHING: object = Object.freeze({});

interface Compiled<T> {
  readonly bytes: Buffer;
  readonly role: T | undefined;
  readonly inner: Level<T> | undefined;
  /** Of the last line that had it. */
  seen: number;
}

/** By the length of the name: most names of a line are passed over by that alone. */
type Level<T> = readonly (Compiled<T>[] | undefined)[];

interface ScanOptions<T> {
  readonly names: ReadonlyMap<string, ScanName<T>>;
  readonly report: (role: T, value: unknown) => void;
  /** Whether a text counts at all, after those that were reported before it. */
  readonly isWanted: (role: T) => boolean;
  /** What a text stands for, of a piece of ASCII without escapes. */
  readonly textOf: (role: T, bytes: Buffer, from: number, end: number) => unknown;
}

const MOST_DEPTH = 32;
const NO = -1;
const NOTHING: Buffer = Buffer.alloc(0);

export class JsonScan<T> {
  readonly #names: Level<T>;
  readonly #options: ScanOptions<T>;
  #bytes = NOTHING;
  #lines = 0;
  /** Whether the string just read has an escape. */
  #isEscaped = false;

  constructor(options: ScanOptions<T>) {
    this.#names = compiled(options.names);
    this.#options = options;
  }

  /** The byte at `end` must be no part of a value: a line end, or nothing. */
  scan(bytes: Buffer, from: number, end: number): boolean {
    if (from >= end || bytes[from] !== OPEN_OBJECT) return false;
    this.#bytes = bytes;
    this.#lines++;
    const behind = this.#object(from + 1, this.#names, 1);
    this.#bytes = NOTHING;
    return behind !== NO && behind <= end && afterSpace(bytes, behind) >= end;
  }

  /** From behind its brace; returns the place behind the object. */
  #object(from: number, level: Level<T> | undefined, depth: number): number {
    const bytes = this.#bytes;
    if (depth > MOST_DEPTH) return NO;
    let at = afterSpace(bytes, from);
    if (bytes[at] === CLOSE_OBJECT) return at + 1;
    for (;;) {
      if (bytes[at] !== QUOTE) return NO;
      const end = this.#stringEnd(at + 1);
      // An escaped name may be any name.
      if (end === NO || (level !== undefined && this.#isEscaped)) return NO;
      const name = level === undefined ? undefined : named(level, bytes, at + 1, end);
      at = afterSpace(bytes, end + 1);
      if (bytes[at] !== COLON) return NO;
      at = afterSpace(bytes, at + 1);
      at = name === undefined ? this.#skip(at, depth) : this.#value(at, name, depth);
      if (at === NO) return NO;
      at = afterSpace(bytes, at);
      if (bytes[at] === CLOSE_OBJECT) return at + 1;
      if (bytes[at] !== COMMA) return NO;
      at = afterSpace(bytes, at + 1);
    }
  }

  #value(at: number, name: Compiled<T>, depth: number): number {
    // Of two values the last counts.
    if (name.seen === this.#lines) return NO;
    name.seen = this.#lines;
    const bytes = this.#bytes;
    const { role, inner } = name;
    const { report, textOf, isWanted } = this.#options;
    const first = bytes[at];
    if (first === OPEN_OBJECT) {
      if (role !== undefined) report(role, SOMETHING);
      return this.#object(at + 1, inner, depth + 1);
    }
    const end = this.#skip(at, depth);
    if (end === NO || role === undefined) return end;
    if (first === QUOTE) {
      const isEscaped = this.#isEscaped;
      if (isWanted(role))
        report(role, isEscaped ? JSON.parse(bytes.toString("latin1", at, end)) : textOf(role, bytes, at + 1, end - 1));
    } else report(role, first === OPEN_LIST ? SOMETHING : plainValue(bytes, at, end));
    return end;
  }

  /** The place behind the value. */
  #skip(at: number, depth: number): number {
    const bytes = this.#bytes;
    switch (bytes[at]) {
      case QUOTE: {
        const end = this.#stringEnd(at + 1);
        return end === NO ? NO : end + 1;
      }
      case OPEN_OBJECT:
        return this.#object(at + 1, undefined, depth + 1);
      case OPEN_LIST:
        return this.#list(at + 1, depth + 1);
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

  #list(from: number, depth: number): number {
    const bytes = this.#bytes;
    if (depth > MOST_DEPTH) return NO;
    let at = afterSpace(bytes, from);
    if (bytes[at] === CLOSE_LIST) return at + 1;
    for (;;) {
      at = this.#skip(at, depth);
      if (at === NO) return NO;
      at = afterSpace(bytes, at);
      if (bytes[at] === CLOSE_LIST) return at + 1;
      if (bytes[at] !== COMMA) return NO;
      at = afterSpace(bytes, at + 1);
    }
  }

  /** The place of the quote at the end. Control characters, a line end among them, are no part of a string. */
  #stringEnd(from: number): number {
    const bytes = this.#bytes;
    this.#isEscaped = false;
    let at = from;
    for (;;) {
      // One comparison a byte: this loop reads most of a line.
      while (isPlain[bytes[at]!] === 1) at++;
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
/** By byte: ASCII that stands for itself in a string. */
const isPlain = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 0x20 && code <= 0x7f && code !== QUOTE && code !== BACKSLASH ? 1 : 0,
);
const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
const NULL = Buffer.from("null");
const ESCAPES = Buffer.from('"\\/bfnrt');

function compiled<T>(names: ReadonlyMap<string, ScanName<T>>): Level<T> {
  const level: (Compiled<T>[] | undefined)[] = [];
  for (const [text, { role, inner }] of names) {
    while (level.length <= text.length) level.push(undefined);
    const alike = level[text.length] ?? [];
    alike.push({ bytes: Buffer.from(text), role, inner: inner && compiled(inner), seen: 0 });
    level[text.length] = alike;
  }
  return level;
}

function named<T>(level: Level<T>, bytes: Buffer, from: number, end: number): Compiled<T> | undefined {
  const length = end - from;
  const alike = length < level.length ? level[length] : undefined;
  if (alike === undefined) return undefined;
  for (let i = 0; i < alike.length; i++) if (isAt(bytes, from, alike[i]!.bytes)) return alike[i];
  return undefined;
}

function isAt(bytes: Buffer, at: number, wanted: Buffer): boolean {
  for (let i = 0; i < wanted.length; i++) if (bytes[at + i] !== wanted[i]) return false;
  return true;
}

/** Space, tab, line feed and carriage return (RFC 8259, section 2); but a line ends at its line feed. */
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

/** RFC 8259, section 6: no leading zero, a digit on both sides of the point. */
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
