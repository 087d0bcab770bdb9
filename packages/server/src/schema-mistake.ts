/**
 * One sentence for the first thing that a schema finds wrong with a value: where, what was expected, what came.
 * In: the validator's findings and the value. Out: `body.cost: expected a whole number, got "1"`. Pure.
 */

export interface Found {
  readonly instancePath: string;
  readonly keyword: string;
  readonly message: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const LONGEST_PATH = 200;
const LONGEST_SHOWN = 64;

export function schemaMistake(found: readonly Found[], value: unknown, part: string): string {
  // What the schema's branches say of themselves ("schema is false") helps nobody.
  const first = found.find(({ keyword }) => keyword !== "boolean") ?? found[0];
  if (first === undefined) return `${part}: not valid`;
  const { instancePath, keyword, params } = first;
  const path = part + instancePath.replaceAll("/", ".").slice(0, LONGEST_PATH);
  if (keyword === "additionalProperties") {
    const names = params.additionalProperties as readonly string[];
    return `${path}: unknown field ${names.map((name) => JSON.stringify(name.slice(0, LONGEST_SHOWN))).join(", ")}`;
  }
  if (keyword === "required") {
    const [missing] = params.requiredProperties as readonly string[];
    return `${path}.${missing}: expected a value, got nothing`;
  }
  const sameplace = found.filter((one) => one.instancePath === instancePath);
  const came = valueAt(value, instancePath);
  return `${path}: expected ${expectation(first, sameplace)}, got ${shown(came, keyword)}`;
}

/** Where the schema has alternatives, each has said what it wanted. */
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
      return `text that matches ${String(first.params.pattern)}`;
    case "minimum":
      return `at least ${limit}`;
    case "maximum":
      return `at most ${limit}`;
    case "minLength":
      return `at least ${limit} ${limit === 1 ? "character" : "characters"}`;
    case "maxLength":
      return `at most ${limit} characters`;
    case "maxItems":
      return `at most ${limit} items`;
    default:
      return `a value that ${first.message}`;
  }
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
  if (typeof value === "object" && value !== null) return "an object";
  return value === undefined ? "nothing" : String(value);
}
