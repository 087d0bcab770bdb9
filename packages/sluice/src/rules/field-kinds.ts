/**
 * The kinds of value in a rule document: what each accepts, how messages describe it, and its JSON Schema. `fields.ts` maps fields to
 * kinds.
 */
import { isTimezone } from "../algorithms/calendar.js";
import { parseCidr } from "./cidr.js";
import { durationPattern, parseDuration } from "./duration.js";
import { LONGEST_PATTERN } from "./glob.js";
import type { AlgorithmName } from "./rule.js";

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Kind {
  readonly shape: "leaf";
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
  readonly schema: JsonSchema;
}

/** Bounds that keep documents, keys and script calls small whatever is sent. */
export const bounds = {
  rules: 100_000,
  overrides: 100_000,
  variants: 100,
  keyAttributes: 8,
  matchAttributes: 16,
  matchValues: 1000,
  matchValueLength: LONGEST_PATTERN,
  attributeNameLength: 128,
  descriptionLength: 1000,
  tags: 20,
  weight: 1_000_000,
  classes: 16,
  threshold: 10,
  /** Entries of one packed ring; its header must be able to count them (`rolling-window-packed.lua`). */
  packedLimit: 4_194_303,
} as const;

/** An object in the JSON sense: not null, a list, a Map or a Date, whose fields would be ignored silently. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.prototype.toString.call(value) === "[object Object]";
}

function kind(expected: string, accepts: (value: unknown) => boolean, schema: JsonSchema): Kind {
  return { shape: "leaf", expected, accepts, schema };
}

function text(expected: string, pattern: RegExp): Kind {
  return kind(expected, (value) => typeof value === "string" && pattern.test(value), {
    type: "string",
    pattern: pattern.source,
  });
}

export function oneOf(words: readonly string[]): Kind {
  const quoted = words.map((word) => JSON.stringify(word)).join(", ");
  return kind(`one of ${quoted}`, (value) => words.includes(value as string), { enum: words });
}

export function wholeNumber(least: number): Kind {
  return kind(
    `a whole number from ${least} to ${Number.MAX_SAFE_INTEGER}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= least,
    { type: "integer", minimum: least, maximum: Number.MAX_SAFE_INTEGER },
  );
}

/** `auto` is only for load shedding, which `rule-consistency.ts` checks. */
export function orAuto(number: Kind): Kind {
  return {
    ...number,
    accepts: (value) => value === "auto" || number.accepts(value),
    schema: { anyOf: [number.schema, { const: "auto" }] },
  };
}

/** The utilisation that an adaptive limit aims at. */
export const target = kind(
  "a utilisation above 0, up to 1",
  (value) => typeof value === "number" && value > 0 && value <= 1,
  { type: "number", exclusiveMinimum: 0, maximum: 1 },
);

export const threshold = kind(
  `a utilisation above 0 and up to ${bounds.threshold}, such as 0.9`,
  (value) => typeof value === "number" && value > 0 && value <= bounds.threshold,
  { type: "number", exclusiveMinimum: 0, maximum: bounds.threshold },
);

export const ruleId = text(
  "an id of 1 to 64 characters a-z 0-9 - _ . that begins with a letter or digit",
  /^[a-z0-9][a-z0-9\-_.]{0,63}$/,
);

export const variantName = text("a name of 1 to 64 letters, digits or - _ .", /^[A-Za-z0-9_.-]{1,64}$/);

export const className = text("a class name of 1 to 64 letters, digits or - _ .", /^[A-Za-z0-9_.-]{1,64}$/);

/** It becomes part of header field names. */
export const unitName = text(
  "a word of 1 to 32 characters a-z 0-9 - that begins with a letter, such as tokens",
  /^[a-z][a-z0-9-]{0,31}$/,
);

export const attributeName = text(
  `an attribute name (1 to ${bounds.attributeNameLength} letters, digits or _ $ @ . : / -)`,
  new RegExp(`^[A-Za-z0-9_$@.:/-]{1,${bounds.attributeNameLength}}$`),
);

export const description = kind(
  `a text of at most ${bounds.descriptionLength} characters`,
  (value) => typeof value === "string" && value.length <= bounds.descriptionLength,
  { type: "string", maxLength: bounds.descriptionLength },
);

export const tagName = text("a tag of 1 to 32 characters a-z 0-9 - _ . :", /^[a-z0-9][a-z0-9\-_.:]{0,31}$/);

export const weight = kind(
  `a number from 0 to ${bounds.weight}`,
  (value) => typeof value === "number" && value >= 0 && value <= bounds.weight,
  { type: "number", minimum: 0, maximum: bounds.weight },
);

export const algorithmNames: readonly AlgorithmName[] = [
  "token-bucket",
  "fixed-window",
  "rolling-window",
  "sliding-counter",
  "gcra",
  "concurrency",
  "load-shedding",
];

/** All but load shedding, which counts nothing. */
export const algorithmsInStore: readonly AlgorithmName[] = algorithmNames.filter((name) => name !== "load-shedding");

export const duration = kind('a duration such as "30s"', (value) => parseDuration(value) !== undefined, {
  type: "string",
  pattern: durationPattern,
});

/** Shorter ones end before a reply is back; longer ones would tie up the units of a crashed instance for too long. */
const shortestPrefetchMs = 5;
const longestPrefetchMs = 60_000;

export const prefetchTerm = kind(
  'a duration from "5ms" to "1m"',
  (value) => {
    const ms = parseDuration(value);
    return ms !== undefined && ms >= shortestPrefetchMs && ms <= longestPrefetchMs;
  },
  duration.schema,
);

const longestReservationMs = 86_400_000;

/** Longer work extends its reservation, which renews the term. */
export const reservationTerm = kind(
  'a duration from "1s" to "1d"',
  (value) => {
    const ms = parseDuration(value);
    return ms !== undefined && ms >= 1_000 && ms <= longestReservationMs;
  },
  duration.schema,
);

export const quantile = kind(
  "a number from 0.01 to 0.999, such as 0.9",
  (value) => typeof value === "number" && value >= 0.01 && value <= 0.999,
  { type: "number", minimum: 0.01, maximum: 0.999 },
);

/** Nobody waits for an hour, and a counter's clock may be ahead of now by at most this. */
const longestWaitMs = 3_600_000;

export const maxWait = kind(
  'a duration of at most "1h", such as "2s"',
  (value) => (parseDuration(value) ?? Number.POSITIVE_INFINITY) <= longestWaitMs,
  duration.schema,
);

/** For successive blocks: the last length repeats. */
const MOST_BLOCK_LENGTHS = 8;

export const blockFor = kind(
  `a duration such as "1h", or a list of 1 to ${MOST_BLOCK_LENGTHS} that grows such as ["1m", "10m", "1h"]`,
  (value) => duration.accepts(value) || (Array.isArray(value) && isGrowing(value)),
  { anyOf: [duration.schema, { type: "array", items: duration.schema, minItems: 1, maxItems: MOST_BLOCK_LENGTHS }] },
);

function isGrowing(lengths: readonly unknown[]): boolean {
  if (lengths.length === 0 || lengths.length > MOST_BLOCK_LENGTHS) return false;
  const lengthsMs = lengths.map(parseDuration);
  return lengthsMs.every((ms, i) => ms !== undefined && (i === 0 || ms > lengthsMs[i - 1]!));
}

const calendarWords: readonly unknown[] = ["day", "week", "month"];

/** The words are calendar windows; `align` decides whether they fit. */
export const windowLength = kind(
  duration.expected,
  (value) => calendarWords.includes(value) || duration.accepts(value),
  { anyOf: [duration.schema, { enum: calendarWords }] },
);

export const timezone = kind(
  'a time zone such as "Europe/Paris"',
  (value) => typeof value === "string" && value.length <= 64 && isTimezone(value),
  { type: "string", maxLength: 64 },
);

export const matchValue = kind(
  `a string of at most ${bounds.matchValueLength} characters, a number or a boolean`,
  (value) =>
    typeof value === "string"
      ? value.length <= bounds.matchValueLength
      : typeof value === "boolean" || Number.isFinite(value),
  { anyOf: [{ type: "string", maxLength: bounds.matchValueLength }, { type: "number" }, { type: "boolean" }] },
);

export const ipMatchValue = kind(
  'an address or a CIDR such as "10.0.0.0/8", or "*"',
  (value) => typeof value === "string" && (value === "*" || parseCidr(value) !== undefined),
  { type: "string", maxLength: 64 },
);

const wholeCost = wholeNumber(0);

export const cost = kind(
  `${wholeCost.expected}, or {attribute: name}`,
  (value) =>
    wholeCost.accepts(value) ||
    (isObject(value) &&
      Object.keys(value).length === 1 &&
      Object.hasOwn(value, "attribute") &&
      attributeName.accepts(value.attribute)),
  {
    anyOf: [
      wholeCost.schema,
      {
        type: "object",
        properties: { attribute: attributeName.schema },
        required: ["attribute"],
        additionalProperties: false,
      },
    ],
  },
);
