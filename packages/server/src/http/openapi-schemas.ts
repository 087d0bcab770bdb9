/**
 * Rewrites schemas for client generators. In: a route's schema. Out: a copy for the OpenAPI document, in which
 *   integers are int64: generators default to int32, too small for a window of 25 days in milliseconds,
 *   a union of constants is one enum, not a union of classes,
 *   objects inside a named schema have names too: `StatsTotal`, not `inline_response_17`,
 *   named schemas are references, and move to `schemas`.
 * Validation uses the original. Pure.
 */
type Schema = Readonly<Record<string, unknown>>;

export function publishSchemas<T>(value: T, schemas: Record<string, unknown>): T {
  return publish(value, undefined, schemas) as T;
}

/** `name`: the name for an untitled object at this position; undefined outside of named schemas. */
function publish(value: unknown, name: string | undefined, schemas: Record<string, unknown>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => publish(one, name, schemas));
  const schema = mergedChoices(value as Schema);
  const title = titleOf(schema, name);
  const copy: Record<string, unknown> = {};
  for (const [keyword, inner] of Object.entries(schema))
    copy[keyword] = publishKeyword({ keyword, inner, title, name, schemas });
  if (copy.type === "integer" && copy.format === undefined) copy.format = "int64";
  if (title === undefined) return copy;
  const named = { ...copy, title };
  // A generated name may collide with another schema's: this one then stays inline.
  if (schema.title === undefined && !isSame(schemas[title] ?? named, named)) return copy;
  schemas[title] ??= named;
  return { $ref: `#/components/schemas/${title}` };
}

interface Keyword {
  readonly keyword: string;
  readonly inner: unknown;
  readonly title: string | undefined;
  readonly name: string | undefined;
  readonly schemas: Record<string, unknown>;
}

function publishKeyword({ keyword, inner, title, name, schemas }: Keyword): unknown {
  if (keyword === "example" || keyword === "examples" || keyword === "enum") return inner;
  if (["anyOf", "oneOf", "allOf"].includes(keyword)) return publishChoices({ inner, title, name, schemas });
  if (keyword !== "properties" || typeof inner !== "object" || inner === null) {
    return publish(inner, keyword === "items" ? singular(title ?? name) : (title ?? name), schemas);
  }
  const properties = Object.entries(inner).map(([property, schema]) => {
    const owner = title ?? name;
    const ownName = owner === undefined ? undefined : owner + property[0]!.toUpperCase() + property.slice(1);
    return [property, publish(schema, ownName, schemas)];
  });
  return Object.fromEntries(properties);
}

/** If a single alternative is an object or a list, it takes the name of its position; several are numbered, to keep the names distinct. */
function publishChoices({ inner, title, name, schemas }: Omit<Keyword, "keyword">): unknown {
  const alternatives = inner as readonly Schema[];
  const isAlone = alternatives.filter(({ type }) => type === "object" || type === "array").length === 1;
  const place = title ?? name;
  return alternatives.map((one, at) => {
    const own = isAlone && title === undefined ? name : place && `${place}${at + 1}`;
    return publish(one, own, schemas);
  });
}

/** Merges an `anyOf` of enums into one enum. */
function mergedChoices(schema: Schema): Schema {
  const { anyOf, ...others } = schema;
  if (!Array.isArray(anyOf) || anyOf.length === 0) return schema;
  const isChoice = (one: Schema): boolean =>
    one.type === "string" && Array.isArray(one.enum) && Object.keys(one).length === 2;
  if (!anyOf.every(isChoice)) return schema;
  return { ...others, type: "string", enum: anyOf.flatMap((one: { enum: string[] }) => one.enum) };
}

function titleOf(schema: Schema, name: string | undefined): string | undefined {
  const isSchema = ["type", "anyOf", "enum", "$ref"].some((keyword) => Object.hasOwn(schema, keyword));
  if (!isSchema) return undefined;
  if (typeof schema.title === "string") return schema.title;
  const hasFields = schema.type === "object" && typeof schema.properties === "object";
  return hasFields ? name : undefined;
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const singular = (name: string | undefined): string | undefined =>
  name
    ?.replace(/ies$/, "y")
    .replace(/(ss|us)es$/, "$1")
    .replace(/([^su])s$/, "$1");
