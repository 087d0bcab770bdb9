/**
 * One sentence for the first schema violation in a value: where, what was expected, what was found.
 * In: a schema and the value. Out: `body.cost: expected a whole number, got "1"`. Pure.
 *
 * The search goes part by part and stops at the first mistake. Asking the validator about the whole value would word all of the hundred
 * thousand mistakes in a hostile body, to show one.
 */
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

interface Found {
  readonly instancePath: string;
  readonly keyword: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const LONGEST_PATH = 200;
const LONGEST_SHOWN = 64;
/** More fields than any of our schemas has. */
const MOST_LOOKED_AT = 1_000;

/** Describes the value's mistake in a sentence; undefined if it matches the schema. */
type Validator = (value: unknown, part: string) => string | undefined;

export function validatorOf(schema: TSchema): Validator {
  // Compiled on first use: most routes are not called for hours after a start.
  let validator: ReturnType<typeof Compile> | undefined;
  return (value, part) => {
    validator ??= Compile(schema);
    // Count unknown fields first: a hundred thousand of them take the validator longer than they took the parser.
    const surplus = surplusFields(schema, value, part);
    if (surplus !== undefined) return surplus;
    if (validator.Check(value)) return undefined;
    // If every part is valid, the whole is not: too few items, too few fields.
    return firstMistake(schema, value, part) ?? mistakeOfPart(schema, value, part) ?? `${part}: not valid`;
  };
}

/** The parts of a JSON Schema that lead to other parts. */
interface Part {
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: TSchema;
  readonly maxItems?: number;
}

/** The unknown fields of an object, or of one in its lists, if it has more fields than its schema. */
function surplusFields(schema: TSchema, value: unknown, path: string): string | undefined {
  const { properties, additionalProperties } = schema as Part;
  if (properties === undefined || additionalProperties !== false || typeof value !== "object" || value === null) {
    return undefined;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  const names = Object.keys(fields);
  const known = names.length <= MOST_LOOKED_AT ? names.filter((name) => Object.hasOwn(properties, name)).length : 0;
  if (names.length > known) return unknownField(names, { path, properties });
  for (const name of names) {
    const { items } = properties[name] as Part;
    const list = fields[name];
    if (items === undefined || !Array.isArray(list)) continue;
    for (let i = 0; i < list.length; i++) {
      const wrong = surplusFields(items, list[i], `${path}.${name}[${i}]`);
      if (wrong !== undefined) return wrong;
    }
  }
  return undefined;
}

function firstMistake(schema: TSchema, value: unknown, path: string): string | undefined {
  const { type, properties = {}, required = [], additionalProperties, items, maxItems } = schema as Part;
  if (type === "object" && typeof value === "object" && value !== null && !Array.isArray(value)) {
    const fields = value as Readonly<Record<string, unknown>>;
    for (const name of required) {
      if (!Object.hasOwn(fields, name)) return missing(properties[name], pathTo(path, name));
    }
    for (const name in fields) {
      const isKnown = Object.hasOwn(properties, name);
      if (!isKnown && additionalProperties === false) return unknownField(Object.keys(fields), { path, properties });
      const part = isKnown ? properties[name] : additionalProperties;
      if (typeof part !== "object") continue;
      const wrong = firstMistake(part as TSchema, fields[name], pathTo(path, name));
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }
  const isLooked =
    type === "array" &&
    items !== undefined &&
    Array.isArray(value) &&
    value.length <= (maxItems ?? Number.POSITIVE_INFINITY);
  if (!isLooked) return mistakeOfPart(schema, value, path);
  for (let i = 0; i < value.length; i++) {
    const wrong = firstMistake(items, value[i], `${path}[${i}]`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function unknownField(names: readonly string[], { path, properties }: { path: string; properties: object }): string {
  const first = names.find((name) => !Object.hasOwn(properties, name))!;
  const more = names.length - 1 - Object.keys(properties).filter((name) => names.includes(name)).length;
  const unknown = `${JSON.stringify(first.slice(0, LONGEST_SHOWN))}${more > 0 ? ` and ${more} more` : ""}`;
  const known = Object.keys(properties);
  return `${path}: unknown field ${unknown}${known.length === 0 ? "" : `; known are ${known.join(", ")}`}`;
}

/** Message for a missing required field, with its type if the schema names one. */
function missing(part: TSchema | undefined, path: string): string {
  const { type } = (part ?? {}) as Part;
  return `${path}: expected ${typeof type === "string" ? typeName(type) : "a value"}, got nothing`;
}

function pathTo(path: string, name: string): string {
  return `${path}.${name}`.slice(0, LONGEST_PATH);
}

/** By schema; compiled on the first search for a mistake in that part. */
const validators = new WeakMap<TSchema, ReturnType<typeof Compile>>();

/** For a part without nested parts, which can have only a few mistakes. */
function mistakeOfPart(schema: TSchema, value: unknown, path: string): string | undefined {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema);
    validators.set(schema, validator);
  }
  if (validator.Check(value)) return undefined;
  return describeMistake([...validator.Errors(value)] as unknown as Found[], value, path);
}

function describeMistake(found: readonly Found[], value: unknown, part: string): string {
  // Skip the messages about boolean schemas ("schema is false"): they do not help.
  const first = found.find(({ keyword }) => keyword !== "boolean") ?? found[0];
  if (first === undefined) return `${part}: not valid`;
  const { instancePath, keyword } = first;
  const path =
    part +
    instancePath
      .replaceAll(/\/(\d+)(?=\/|$)/g, "[$1]")
      .replaceAll("/", ".")
      .slice(0, LONGEST_PATH);
  const sameplace = found.filter((one) => one.instancePath === instancePath);
  const came = valueAt(value, instancePath);
  return `${path}: expected ${expectation(first, sameplace)}, got ${shown(came, keyword)}`;
}

/** For a union, lists what each alternative expected. */
function expectation(first: Found, sameplace: readonly Found[]): string {
  const choices = sameplace.flatMap(({ keyword, params }) => {
    if (keyword === "const") return [JSON.stringify(params.allowedValue)];
    if (keyword === "enum") return (params.allowedValues as readonly unknown[]).map((one) => JSON.stringify(one));
    return keyword === "type" ? [typeName(params.type)] : [];
  });
  if (choices.length > 0) return [...new Set(choices)].join(" or ");
  const { limit } = first.params as { limit?: number };
  switch (first.keyword) {
    case "pattern":
      return patternWords(String(first.params.pattern));
    case "minimum":
      return `at least ${limit}`;
    case "maximum":
      return `at most ${limit}`;
    case "minLength":
      return `at least ${limit} ${limit === 1 ? "character" : "characters"}`;
    case "maxLength":
      return `at most ${limit} characters`;
    case "minItems":
      return `at least ${limit} ${limit === 1 ? "item" : "items"}`;
    case "minProperties":
      return `at least ${limit} ${limit === 1 ? "field" : "fields"}`;
    case "maxItems":
      return `at most ${limit} items`;
    default:
      return `a value that ${first.message}`;
  }
}

/** Describes a pattern for digits in words rather than as a regular expression. */
function patternWords(pattern: string): string {
  const digits = /^\^\[([01])-9\](?:\[0-9\])?\{[01],(\d+)\}\$$/.exec(pattern);
  if (digits === null) return `text that matches ${pattern}`;
  const [, first, most] = digits;
  return first === "0" ? `a whole number of at most ${most} digits` : "a whole number from 1";
}

const typeNames: Readonly<Record<string, string>> = {
  object: "an object",
  array: "a list",
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
};

function typeName(type: unknown): string {
  return typeNames[String(type)] ?? String(type);
}

function valueAt(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split("/").slice(1)) {
    const key = name.replaceAll("~1", "/").replaceAll("~0", "~");
    at =
      typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as Record<string, unknown>)[key]
        : undefined;
  }
  return at;
}

function shown(value: unknown, keyword: string): string {
  if (typeof value === "string") {
    if (keyword.endsWith("Length")) return `${value.length}`;
    const isLong = value.length > LONGEST_SHOWN;
    return JSON.stringify(isLong ? `${value.slice(0, LONGEST_SHOWN)}…` : value);
  }
  if (Array.isArray(value)) return keyword.endsWith("Items") ? `${value.length}` : "a list";
  if (typeof value === "object" && value !== null)
    return keyword.endsWith("Properties") ? `${Object.keys(value).length}` : "an object";
  return value === undefined ? "nothing" : String(value);
}
