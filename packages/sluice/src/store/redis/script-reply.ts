/**
 * Validates the reply to a script. A proxy, an old server or an oddly configured client may answer anything: wrong types, too few elements,
 * strings instead of numbers. Each case becomes a `store-unavailable` that names what was expected and what came, so that a rule's
 * `onStoreFailure` decides; nothing is ever misread as a verdict. Pure. Never: a message as long as the reply, or with its control
 * characters.
 */
import type { SluiceError } from "../../errors.js";
import { unavailable } from "./failure.js";
import { printable } from "./printable.js";

const MOST_SHOWN = 60;
/** A client may be configured to return integers as strings, or strings as buffers. */
const INTEGER = /^-?\d{1,20}$/;
const NUMBER = /^-?(\d{1,20}(\.\d{1,40})?|\.\d{1,40})(e[+-]?\d{1,3})?$/i;

/** If a Redis answered at all, the script has run. */
export function malformed(expected: string, got: unknown): SluiceError {
  return unavailable(`malformed reply to a script: expected ${expected}, got ${describe(got)}`, undefined, true);
}

export function isMalformed(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Redis: malformed reply");
}

export function arrayIn(reply: unknown, expected: string): readonly unknown[] {
  if (!Array.isArray(reply)) throw malformed(expected, reply);
  return reply;
}

/** NaN for anything but an integer: `Number` reads null, "" and [] as 0. */
export function integerIn(value: unknown): number {
  return read(value, INTEGER);
}

/** The first elements of a reply, by their names in the script's header; more may follow. Strings with fractions are numbers too. */
export function numbersNamed(reply: unknown, ...names: readonly string[]): number[] {
  const given = arrayIn(reply, `an array of ${names.join(", ")}`);
  return names.map((name, i) => {
    const found = read(given[i], NUMBER);
    if (!Number.isFinite(found)) throw malformed(`${name}, a number, as element ${i} of ${given.length}`, given[i]);
    return found;
  });
}

/** A number from a reply that consists of numbers. */
export function numberAt(reply: readonly number[], at: number): number {
  const found = reply[at];
  if (!Number.isFinite(found)) throw malformed(`a number as element ${at} of ${reply.length}`, found);
  return found!;
}

/** What GET may return. */
export function textOrNothing(reply: unknown): string | undefined {
  if (reply === null || reply === undefined) return undefined;
  if (typeof reply === "string") return reply;
  if (Buffer.isBuffer(reply)) return reply.toString();
  throw malformed("a text or nothing", reply);
}

function read(value: unknown, pattern: RegExp): number {
  if (typeof value === "number") return value;
  const text = typeof value === "bigint" || Buffer.isBuffer(value) ? value.toString() : value;
  return typeof text === "string" && pattern.test(text) ? Number(text) : Number.NaN;
}

function describe(value: unknown): string {
  if (typeof value === "string") return `a text of ${value.length} characters, ${printable(value, MOST_SHOWN)}`;
  if (Buffer.isBuffer(value))
    return `${value.length} bytes, ${printable(value.toString("latin1", 0, 100), MOST_SHOWN)}`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value instanceof Error) return `the error ${printable(value.message, MOST_SHOWN)}`;
  if (typeof value === "object" && value !== null) return "an object";
  return value === undefined ? "nothing" : printable(String(value), MOST_SHOWN).slice(1, -1);
}
