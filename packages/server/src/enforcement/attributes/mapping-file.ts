/**
 * The `--attributes` file: maps parts of an HTTP request to attributes, and lists the proxies whose forwarded addresses are trusted.
 * In: YAML or JSON. Out: the mapping, or `invalid-setting` with every mistake and its path. Nothing is guessed.
 */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { SluiceError } from "sluice";
import Type, { type Static } from "typebox";
import { Compile } from "typebox/compile";
import { parse as parseYaml } from "yaml";

const exact = { additionalProperties: false } as const;
const name = Type.String({ minLength: 1, maxLength: 128 });
const template = Type.String({ pattern: "^/", maxLength: 256 });

const source = Type.Union([
  /** `trusted`: read only if sent by a trusted proxy; from anyone else it is ignored and not forwarded. */
  Type.Object({ header: name, trusted: Type.Optional(Type.Boolean()) }, exact),
  Type.Object({ cookie: name }, exact),
  /** A claim of the verified token; dots descend into objects. */
  Type.Object({ claim: name }, exact),
  /** A field of the request key's entry in `apiKeys`. */
  Type.Object({ apiKey: name }, exact),
  /** The value of `{…}` in the template. */
  Type.Object({ path: template }, exact),
  /** The text of the first template that matches the path: low cardinality, however many paths there are. */
  Type.Object({ route: Type.Array(template, { minItems: 1, maxItems: 1000 }) }, exact),
  Type.Object({ address: Type.Literal("client") }, exact),
  /** A constant; as the last of several sources, the default. */
  Type.Object({ value: Type.Union([name, Type.Number(), Type.Boolean()]) }, exact),
]);
export type Source = Static<typeof source>;

/** Any other brace or star would stand for itself, and the template match no path. */
function isTemplate(text: string): boolean {
  const segments = text.replace(/\/\*\*$/, "").split("/");
  return segments.every((segment) => /^(?:\{[^{}*]*\}|[^{}*]*)$/.test(segment));
}

const mappingFile = Type.Object(
  {
    trustedProxies: Type.Optional(Type.Union([Type.Array(name), Type.Integer({ minimum: 0, maximum: 32 })])),
    ipv6Prefix: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
    /** How the servers behind the gateway or the proxy normalise paths. */
    paths: Type.Optional(
      Type.Object(
        {
          /** `%2F`, `%5C` and the backslash. Default `refuse`: servers disagree on what they mean. */
          encodedSlashes: Type.Optional(
            Type.Union([Type.Literal("refuse"), Type.Literal("keep"), Type.Literal("decode")]),
          ),
          ignoreCase: Type.Optional(Type.Boolean()),
          ignoreTrailingSlash: Type.Optional(Type.Boolean()),
          ignoreParams: Type.Optional(Type.Boolean()),
        },
        exact,
      ),
    ),
    attributes: Type.Optional(
      Type.Unsafe<Record<string, Source | Source[]>>({
        type: "object",
        additionalProperties: Type.Union([source, Type.Array(source, { minItems: 1, maxItems: 8 })]),
      }),
    ),
    jwt: Type.Optional(
      Type.Object(
        {
          /** Default: `Authorization: Bearer …`. */
          header: Type.Optional(name),
          cookie: Type.Optional(name),
          /** Exactly one of: a public key or certificate (PEM file), a shared secret (file), a JWKS (URL or file). */
          publicKey: Type.Optional(name),
          secret: Type.Optional(name),
          jwks: Type.Optional(name),
          issuer: Type.Optional(name),
          audience: Type.Optional(name),
          algorithms: Type.Optional(Type.Array(name, { minItems: 1 })),
        },
        exact,
      ),
    ),
    apiKeys: Type.Optional(
      Type.Object(
        {
          /** Default `x-api-key`. */
          header: Type.Optional(name),
          /** Each key by its SHA-256 (hex), so that the file holds no secrets, with any further fields. */
          keys: Type.Array(
            Type.Unsafe<{ sha256: string } & Record<string, string | number | boolean>>({
              type: "object",
              required: ["sha256"],
              properties: { sha256: { type: "string", pattern: "^[0-9a-f]{64}$" } },
              additionalProperties: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }] },
            }),
          ),
        },
        exact,
      ),
    ),
  },
  exact,
);
export type Mapping = Static<typeof mappingFile>;

const MOST_MISTAKES = 20;

/** Relative file names in the mapping are resolved against its folder. */
export function readMapping(file: string): { mapping: Mapping; besideFile: (path: string) => string } {
  let document: unknown;
  try {
    document = parseYaml(readFileSync(file, "utf8"));
  } catch (error) {
    throw new SluiceError("invalid-setting", `attributes: expected YAML in ${file}, got ${(error as Error).message}`);
  }
  const mapping = checkMapping(document ?? {}, file);
  return { mapping, besideFile: (path) => resolve(dirname(file), path) };
}

function checkMapping(document: unknown, file: string): Mapping {
  const validator = Compile(mappingFile);
  const mistakes = validator.Check(document)
    ? conflicts(document)
    : schemaMistakes(validator.Errors(document), document);
  if (mistakes.length === 0) return document as Mapping;
  throw new SluiceError(
    "invalid-setting",
    mistakes
      .slice(0, MOST_MISTAKES)
      .map((mistake) => `attributes: ${file}: ${mistake}`)
      .join("\n"),
  );
}

interface SchemaMistake {
  readonly instancePath: string;
  readonly message: string;
  readonly keyword: string;
}

function schemaMistakes(errors: Iterable<SchemaMistake>, document: unknown): string[] {
  const byPath = new Map<string, string>();
  for (const { instancePath, message, keyword } of errors) {
    // Of the many errors that a union reports for one position, the first is enough.
    if (keyword === "boolean" || byPath.has(instancePath)) continue;
    // Reworded to match our other messages: the validator's begin with "must".
    const expected = message.replace(/^must (be |have |)/, (_, verb) => (verb === "" ? "expected to " : "expected "));
    const came = keyword === "type" ? `, got ${shown(valueAt(document, instancePath))}` : "";
    byPath.set(instancePath, expected + came);
  }
  return [...byPath].map(([path, message]) => `${path.slice(1).replaceAll("/", ".") || "the file"}: ${message}`);
}

function shown(value: unknown): string {
  return typeof value === "object" && value !== null
    ? "a list or a mapping"
    : String(JSON.stringify(value)).slice(0, 100);
}

function valueAt(document: unknown, path: string): unknown {
  let at = document;
  for (const step of path.split("/").slice(1)) {
    // A JSON pointer (RFC 6901): "/" and "~" of a name are escaped.
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = (at as Readonly<Record<string, unknown>> | undefined)?.[name];
  }
  return at;
}

/** Checks that the schema cannot express. */
function conflicts({ attributes = {}, jwt, apiKeys, trustedProxies }: Mapping): string[] {
  const found: string[] = [];
  const sources = Object.entries(attributes).flatMap(([attribute, one]) =>
    (Array.isArray(one) ? one : [one]).map((source) => ({ attribute, source })),
  );
  for (const { attribute, source } of sources) {
    if ("trusted" in source && source.trusted === true && trustedProxies === undefined)
      found.push(`attributes.${attribute}: trusted needs trustedProxies, which is absent`);
    if ("claim" in source && jwt === undefined)
      found.push(`attributes.${attribute}: a claim needs jwt, which is absent`);
    if ("apiKey" in source && apiKeys === undefined)
      found.push(`attributes.${attribute}: apiKey needs apiKeys, which is absent`);
    if ("path" in source && source.path.split("{").length !== 2) {
      found.push(
        `attributes.${attribute}.path: expected one {name} in the template, got ${JSON.stringify(source.path)}`,
      );
    } else {
      const templates = "path" in source ? [source.path] : "route" in source ? source.route : [];
      for (const template of templates.filter((text) => !isTemplate(text)))
        found.push(
          `attributes.${attribute}: expected whole segments {name}, and ** only as the last one, got ${JSON.stringify(template)}`,
        );
    }
  }
  if (jwt !== undefined && [jwt.publicKey, jwt.secret, jwt.jwks].filter((given) => given !== undefined).length !== 1) {
    found.push("jwt: expected one of publicKey, secret and jwks");
  }
  return found;
}
