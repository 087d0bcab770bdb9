/**
 * The single table of the rule document's fields. Validation (`validate-rules.ts`) and the JSON Schema (`rule-json-schema.ts`) both walk
 * it, and a test holds `docs/rules.md` equal to it. Mistakes that no single field shows (a minInterval above the window) are in
 * `rule-consistency.ts`.
 */
import {
  algorithmNames,
  algorithmsInStore,
  attributeName,
  blockFor,
  bounds,
  className,
  cost,
  description,
  duration,
  ipMatchValue,
  type Kind,
  matchValue,
  maxWait,
  oneOf,
  orAuto,
  prefetchTerm,
  quantile,
  reservationTerm,
  ruleId,
  tagName,
  target,
  threshold,
  timezone,
  unitName,
  variantName,
  weight,
  wholeNumber,
  windowLength,
} from "./field-kinds.js";
import type { AlgorithmName, NumberFields } from "./rule.js";

export interface ListOf {
  readonly shape: "list";
  readonly expected: string;
  readonly item: Shape;
  readonly most: number;
  /** True if there may be so many items that a walk over them must be able to pause. */
  readonly isLong: boolean;
}
/** A value, or a list of which one must match. */
interface OneOrMany {
  readonly shape: "one-or-many";
  readonly item: Kind;
  readonly most: number;
}
/** An object keyed by attribute, or by another kind of name. */
export interface ByAttribute {
  readonly shape: "by-attribute";
  readonly expected: string;
  readonly name: Kind;
  readonly value: Shape;
  /** Attributes with a different grammar. */
  readonly special: ReadonlyMap<string, Shape>;
  readonly least: number;
  readonly most: number;
}
export interface ObjectOf {
  readonly shape: "object";
  readonly expected: string;
  readonly fields: ReadonlyMap<string, Field>;
  /** The fields that are long lists. */
  readonly longLists: ReadonlyMap<string, ListOf>;
  /** Names that are not fields here but deserve a specific message. */
  readonly refused?: ReadonlyMap<string, string>;
}
export type Shape = Kind | ListOf | OneOrMany | ByAttribute | ObjectOf;

interface Field {
  readonly shape: Shape;
  readonly required?: true;
  /** The algorithms that have the field; absent: all of them. */
  readonly algorithms?: readonly AlgorithmName[];
}

// A Map, not an object: a document may contain a field named "constructor" or "__proto__".
const object = (expected: string, fields: Record<string, Field>): ObjectOf => ({
  shape: "object",
  expected,
  fields: new Map(Object.entries(fields)),
  longLists: new Map(
    Object.entries(fields).flatMap(([name, { shape }]) =>
      shape.shape === "list" && shape.isLong ? [[name, shape] as const] : [],
    ),
  ),
});

const LONG = 1_000;

const list = (expected: string, item: Shape, most: number): ListOf => ({
  shape: "list",
  expected,
  item,
  most,
  isLong: most > LONG,
});

const matchOf = (least: 0 | 1): ByAttribute => ({
  shape: "by-attribute",
  name: attributeName,
  expected: least === 0 ? "an object of attributes and values" : "an object of at least one attribute and its value",
  value: { shape: "one-or-many", item: matchValue, most: bounds.matchValues },
  special: new Map([["ip", { shape: "one-or-many", item: ipMatchValue, most: bounds.matchValues }]]),
  least,
  most: bounds.matchAttributes,
});

const algorithm = oneOf(algorithmNames);

const refill = object("an object {amount, every}", {
  amount: { shape: wholeNumber(1), required: true },
  every: { shape: duration, required: true },
});

const countingAlgorithms = ["token-bucket", "fixed-window", "rolling-window", "sliding-counter", "gcra"] as const;

const numbers = {
  limit: { shape: wholeNumber(0) },
  window: { shape: windowLength, algorithms: countingAlgorithms },
  refill: { shape: refill, algorithms: ["token-bucket"] },
  align: { shape: oneOf(["epoch", "calendar"]), algorithms: ["fixed-window"] },
  timezone: { shape: timezone, algorithms: ["fixed-window"] },
  minInterval: { shape: duration, algorithms: ["rolling-window"] },
  storage: { shape: oneOf(["sorted-set", "packed"]), algorithms: ["rolling-window"] },
  burst: { shape: wholeNumber(1), algorithms: ["gcra"] },
  ttl: { shape: duration, algorithms: ["concurrency"] },
  prefetch: { shape: prefetchTerm, algorithms: ["token-bucket", "fixed-window", "rolling-window", "gcra"] },
  maxWait: { shape: maxWait, algorithms: ["token-bucket", "fixed-window", "rolling-window", "gcra"] },
  blockFor: { shape: blockFor, algorithms: countingAlgorithms },
} as const satisfies Record<keyof NumberFields, Field>;

const loadSignal = oneOf(["inflight", "event-loop", "reported"]);
const loadShedding = ["load-shedding"] as const;

/** The fields of load shedding, besides the numbers of the other algorithms. */
const sheddingFields = {
  signal: { shape: { shape: "one-or-many", item: loadSignal, most: 3 }, algorithms: loadShedding },
  class: {
    shape: object("an object {attribute, default}", {
      attribute: { shape: attributeName, required: true },
      default: { shape: className, required: true },
    }),
    algorithms: loadShedding,
  },
  classes: {
    shape: {
      shape: "by-attribute",
      expected: "an object of at least one class and the utilisation at which it is shed",
      name: className,
      value: threshold,
      special: new Map(),
      least: 1,
      most: bounds.classes,
    },
    algorithms: loadShedding,
  },
  fairBy: { shape: attributeName, algorithms: loadShedding },
} as const satisfies Record<string, Field>;

const estimate = object("an object {default, attribute, quantile, ttl, overrun}", {
  attribute: { shape: attributeName },
  quantile: { shape: quantile },
  default: { shape: wholeNumber(1), required: true },
  ttl: { shape: reservationTerm },
  overrun: { shape: oneOf(["finish", "stop"]) },
});

const adapt = object("an object {signal, target, min, max}", {
  signal: {
    shape: { shape: "one-or-many", item: oneOf(["reported", "event-loop"]), most: 2 },
    required: true,
  },
  target: { shape: target, required: true },
  min: { shape: wholeNumber(1), required: true },
  max: { shape: wholeNumber(1), required: true },
});

export const override: ObjectOf = {
  ...object("an override {match, and the numbers that differ}", {
    match: { shape: matchOf(1), required: true },
    ...numbers,
  }),
  refused: new Map([["algorithm", "an override may change the numbers, not the algorithm"]]),
};

export const candidate = object("an object of the numbers (or the algorithm) that differ", {
  algorithm: { shape: algorithm },
  ...numbers,
});

export const variant = object("a variant {name, weight, and the numbers or the algorithm that differ}", {
  name: { shape: variantName, required: true },
  weight: { shape: weight, required: true },
  algorithm: { shape: algorithm },
  ...numbers,
});

export const rule = object("a rule {id, key, algorithm, limit, ...}", {
  id: { shape: ruleId, required: true },
  description: { shape: description },
  tags: { shape: list("a list of tags", tagName, bounds.tags) },
  match: { shape: matchOf(0) },
  key: {
    shape: list("a list of attribute names ([] = one counter for all)", attributeName, bounds.keyAttributes),
    required: true,
  },
  algorithm: { shape: algorithm, required: true },
  ...numbers,
  limit: { shape: orAuto(numbers.limit.shape) },
  ...sheddingFields,
  cost: { shape: cost, algorithms: algorithmsInStore },
  unit: { shape: unitName, algorithms: algorithmsInStore },
  estimate: { shape: estimate, algorithms: countingAlgorithms },
  mode: { shape: oneOf(["enforce", "shadow", "off"]) },
  onStoreFailure: { shape: oneOf(["local", "allow", "deny"]), algorithms: algorithmsInStore },
  scope: { shape: oneOf(["region", "global"]), algorithms: algorithmsInStore },
  overrides: { shape: list("a list of overrides", override, bounds.overrides), algorithms: algorithmsInStore },
  candidate: { shape: candidate, algorithms: algorithmsInStore },
  variants: { shape: list("a list of variants", variant, bounds.variants), algorithms: algorithmsInStore },
  colocate: { shape: attributeName, algorithms: algorithmsInStore },
  adapt: { shape: adapt, algorithms: algorithmsInStore },
});

const ENVOY_FILE =
  "a field of envoyproxy/ratelimit: `sluice migrate` makes rules of such a file, --envoy-config reads it as it is";
const ALONE = "a field of a rule, not of the document: put the rule in a list, rules: [{ id: … }]";

export const ruleDocument: ObjectOf = {
  ...object("an object {rules: [...]}, or a list of rules", {
    rules: { shape: list("a list of rules", rule, bounds.rules), required: true },
  }),
  refused: new Map([
    ["domain", ENVOY_FILE],
    ["descriptors", ENVOY_FILE],
    ["id", ALONE],
  ]),
};

/** The number fields of each algorithm. */
export const numberFieldsOf: ReadonlyMap<AlgorithmName, readonly (keyof NumberFields)[]> = new Map(
  algorithmNames.map((name) => [
    name,
    Object.entries<Field>(numbers)
      .filter(([, field]) => field.algorithms?.includes(name) ?? true)
      .map(([field]) => field as keyof NumberFields),
  ]),
);

/** The algorithms that have a number field; undefined for a field that all of them have. */
export function algorithmsOf(field: string): readonly AlgorithmName[] | undefined {
  return rule.fields.get(field)?.algorithms;
}
