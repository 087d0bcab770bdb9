/**
 * Parses values from the bytes of a line without decoding text. Each result equals that of the text, or is NaN: then the text must be
 * parsed instead (`byte-readers.test.ts` compares them on mutated lines).
 */
import { parseEpoch } from "./log-time.js";

const ZERO = 0x30;
const POINT = 0x2e;
const COMMA = 0x2c;
const COLON = 0x3a;
const UPPER_T = 0x54;
const SPACE = 0x20;
const MOST_DIGITS = 15;
const powers = Array.from({ length: MOST_DIGITS + 1 }, (_, digits) => 10 ** digits);

export function isDigit(code: number | undefined): boolean {
  return code !== undefined && code >= ZERO && code <= 0x39;
}

/** Digits, optionally with a decimal point: both operands of the division are exact, so the result is the nearest number. */
export function decimalIn(bytes: Uint8Array, from: number, end: number): number {
  if (end - from > MOST_DIGITS + 1 || !isDigit(bytes[from]) || !isDigit(bytes[end - 1])) return Number.NaN;
  let digits = 0;
  let pointAt = end;
  for (let at = from; at < end; at++) {
    const code = bytes[at]!;
    if (code === POINT && pointAt === end) pointAt = at + 1;
    else if (isDigit(code)) digits = digits * 10 + (code - ZERO);
    else return Number.NaN;
  }
  return digits <= Number.MAX_SAFE_INTEGER ? digits / powers[end - pointAt]! : Number.NaN;
}

const EPOCH_DIGITS = 9;

/** Seconds since the epoch with a fraction, or milliseconds: `1795000000.123`. */
export function epochIn(bytes: Uint8Array, from: number, end: number): number {
  let digits = from;
  while (digits < end && isDigit(bytes[digits])) digits++;
  if (digits - from < EPOCH_DIGITS) return Number.NaN;
  return parseEpoch(decimalIn(bytes, from, end)) ?? Number.NaN;
}

/** The end of an IPv4 address without its port; -1 for anything else with a colon or a bracket. */
export function addressEnd(bytes: Uint8Array, from: number, end: number): number {
  let dots = 0;
  let colonAt = end;
  // Characters other than digits and dots before the colon: a name, or IPv6.
  let isPlain = true;
  for (let at = from; at < end; at++) {
    const code = bytes[at]!;
    if (isDigit(code)) continue;
    if (code === COLON) {
      if (colonAt !== end || at === from || at + 1 === end || bytes[at - 1] === POINT) return -1;
      colonAt = at;
    } else if (colonAt !== end || code === 0x5b) return -1;
    else if (code === POINT && at > from && bytes[at - 1] !== POINT) dots++;
    else isPlain = false;
  }
  if (colonAt === end) return end;
  return isPlain && dots === 3 ? colonAt : -1;
}

/** Maximum digits of a fraction: with more, `parseIsoTime` rounds. */
const MOST_FRACTION = 6;
const FRACTION_FROM = 20;
const DATE_LENGTH = 10;
const LONGEST_TIME = 40;

/**
 * Caches the last time: most lines of a log have the second of the line before, and differ at most in the fraction. In: a text parser that
 * handles ISO 8601 like `parseIsoTime`.
 */
export class LastTime {
  readonly #parse: (text: string) => number | undefined;
  readonly #last = new Uint8Array(LONGEST_TIME);
  #length = 0;
  /** End of the last time's fraction; without one, where it would start. */
  #fractionEnd = FRACTION_FROM;
  /** The last time without its fraction. */
  #baseMs = 0;

  constructor(parse: (text: string) => number | undefined) {
    this.#parse = parse;
  }

  /** NaN if it is no time. */
  read(bytes: Buffer, from: number, end: number): number {
    const length = end - from;
    if (length !== this.#length) return this.#parsed(bytes, from, end);
    const last = this.#last;
    const fractionEnd = this.#fractionEnd;
    const before = fractionEnd > FRACTION_FROM ? FRACTION_FROM : length;
    for (let i = 0; i < before; i++) if (bytes[from + i] !== last[i]) return this.#parsed(bytes, from, end);
    if (before === length) return this.#baseMs;
    for (let i = fractionEnd; i < length; i++) if (bytes[from + i] !== last[i]) return this.#parsed(bytes, from, end);
    const fraction = fractionIn(bytes, from + FRACTION_FROM, from + fractionEnd);
    return fraction < 0 ? this.#parsed(bytes, from, end) : this.#baseMs + fraction;
  }

  #parsed(bytes: Buffer, from: number, end: number): number {
    const ms = this.#parse(bytes.toString("latin1", from, end));
    this.#length = 0;
    if (ms === undefined) return Number.NaN;
    if (end - from > LONGEST_TIME) return ms;
    const digitsEnd = fractionEnd(bytes, from, end);
    const digits = digitsEnd - FRACTION_FROM;
    if (digits > MOST_FRACTION) return ms;
    for (let at = from; at < end; at++) this.#last[at - from] = bytes[at]!;
    this.#length = end - from;
    this.#fractionEnd = digitsEnd;
    this.#baseMs = digits === 0 ? ms : ms - fractionIn(bytes, from + FRACTION_FROM, from + digitsEnd);
    return ms;
  }
}

/** End of an ISO 8601 time's fraction, relative to the start of the time; where it would start if there is none. */
function fractionEnd(bytes: Buffer, from: number, end: number): number {
  const mark = bytes[from + FRACTION_FROM - 1];
  const between = bytes[from + DATE_LENGTH];
  // An epoch has no separator there, and its fraction has another unit.
  const isIso = between === UPPER_T || between === SPACE;
  if (end - from <= FRACTION_FROM || !isIso || (mark !== POINT && mark !== COMMA)) return FRACTION_FROM;
  let at = from + FRACTION_FROM;
  while (at < end && isDigit(bytes[at])) at++;
  return at - from;
}

/** Whole milliseconds of the digits after the point; -1 if one is not a digit. */
function fractionIn(bytes: Buffer, from: number, end: number): number {
  let ms = 0;
  let unit = 100;
  for (let at = from; at < end; at++) {
    if (!isDigit(bytes[at])) return -1;
    if (at - from >= 3) continue;
    ms += unit * (bytes[at]! - ZERO);
    unit /= 10;
  }
  return ms;
}
