/**
 * Reads YAML as envoyproxy/ratelimit does (Go's yaml.v2, YAML 1.1): scalars keep their source text, because `00123`, `0x1F` and `True` are
 * ordinary descriptor values; merge keys are supported.
 * In: the text of a file. Out: its documents as mappings, lists, quoted strings and `Plain` scalars, or the syntax errors.
 * Never: numbers or booleans. How a plain scalar is interpreted depends on its field (`isFloat`, `booleanOf`, `wholeNumberOf`).
 */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from "yaml";

/** An unquoted scalar, as its source text. */
export class Plain {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Mapping = Record<string, unknown>;

/** Nested aliases can expand a page to gigabytes (billion laughs). */
const MOST_ALIASED = 100_000;

export function readYaml(text: string): { documents: unknown[] } | { mistakes: string[] } {
  // The failsafe schema keeps plain text: YAML 1.1 would give `=` and `<<` types of their own.
  const parsed = parseAllDocuments(text, { schema: "failsafe", uniqueKeys: true, merge: false });
  const documents = "empty" in parsed ? [] : parsed;
  const mistakes = documents.flatMap(({ errors }) => errors.map(({ message }) => message.split("\n")[0]!));
  if (mistakes.length > 0) return { mistakes };
  try {
    const read = documents.map((document) => new Reader(document as Document).read(document.contents as Node | null));
    // A file may end with `---`; the caller refuses an empty file.
    const written = read.filter((content) => !isNull(content));
    return { documents: written.length > 0 ? written : [undefined] };
  } catch (error) {
    return { mistakes: [(error as Error).message] };
  }
}

class Reader {
  readonly #document: Document;
  /** Current alias depth, and the number of values read through aliases. */
  #depth = 0;
  #aliased = 0;
  /** Cached, because the library searches the whole document for each alias. */
  readonly #targets = new Map<Alias, unknown>();

  constructor(document: Document) {
    this.#document = document;
  }

  read(node: unknown): unknown {
    if (this.#depth > 0 && ++this.#aliased > MOST_ALIASED)
      throw new Error(`expected at most ${MOST_ALIASED} values in aliases`);
    if (isAlias(node)) return this.#readAlias(node);
    if (isSeq(node)) return node.items.map((item) => this.read(item));
    if (isMap(node)) return this.#readMapping(node);
    if (!isScalar(node)) return undefined;
    return isPlain(node) ? new Plain(String(node.source ?? node.value ?? "")) : String(node.value);
  }

  #readAlias(node: Alias): unknown {
    if (!this.#targets.has(node)) this.#targets.set(node, node.resolve(this.#document));
    this.#depth++;
    const read = this.read(this.#targets.get(node));
    this.#depth--;
    return read;
  }

  #readMapping(node: YAMLMap): Mapping {
    // No prototype, so that `__proto__` is an unknown key like any other.
    const mapping = Object.create(null) as Mapping;
    const merged: Mapping[] = [];
    for (const { key, value } of node.items) {
      if (!isScalar(key)) throw new Error("expected names as keys, got a list or a mapping");
      const name = String(key.source ?? key.value ?? "");
      if (name === "<<" && isPlain(key)) merged.push(...this.#mergedBy(value));
      else mapping[isPlain(key) ? name : String(key.value)] = this.read(value);
    }
    // Own keys win over merged ones, earlier merged mappings over later ones.
    for (const source of merged)
      for (const [name, value] of Object.entries(source)) if (!(name in mapping)) mapping[name] = value;
    return mapping;
  }

  #mergedBy(value: unknown): Mapping[] {
    const read = this.read(value);
    const sources = Array.isArray(read) ? read : [read];
    if (!sources.every(isMapping)) throw new Error("<<: expected a mapping or a list of mappings");
    return sources;
  }
}

function isPlain({ type }: { type?: unknown }): boolean {
  return type === undefined || type === "PLAIN";
}

export function isMapping(value: unknown): value is Mapping {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Plain);
}

export function isNull(value: unknown): boolean {
  return value === undefined || value === null || (value instanceof Plain && /^(|~|null|Null|NULL)$/.test(value.text));
}

/** YAML 1.1 has more words for booleans than JSON. */
export function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (!(value instanceof Plain)) return undefined;
  if (/^(y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/.test(value.text)) return true;
  return /^(n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/.test(value.text) ? false : undefined;
}

/** Go's integers: `1_000`, `0x1F`, `0b11`, `0o17`, and `017`, which is octal. */
export function wholeNumberOf(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? value : undefined;
  if (!(value instanceof Plain)) return undefined;
  const [, sign, digits] = /^([-+]?)(0x[\da-f]+|0b[01]+|0o[0-7]+|\d+)$/i.exec(value.text.replaceAll("_", "")) ?? [];
  if (digits === undefined) return undefined;
  const number = /^0\d/.test(digits)
    ? /^[0-7]+$/.test(digits)
      ? Number.parseInt(digits, 8)
      : Number.NaN
    : Number(digits);
  return Number.isSafeInteger(number) ? (sign === "-" ? -number : number) : undefined;
}

/** Values that the reference parses as floats and always refuses: `1.0`, `08`, `1e+3`, `.inf`. */
export function isFloat({ text }: Plain): boolean {
  if (/^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/.test(text)) return true;
  const digits = text.replaceAll("_", "");
  return /^[-+]?\d*\.?\d+([eE][-+]\d+)?$|^[-+]?\d+\.$/.test(digits) && wholeNumberOf(new Plain(digits)) === undefined;
}

/** Converts to plain JSON values, for rule numbers and metadata. */
export function nativeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(nativeOf);
  if (isMapping(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, nativeOf(one)]));
  if (!(value instanceof Plain)) return value;
  if (isNull(value)) return null;
  return booleanOf(value) ?? wholeNumberOf(value) ?? (isFloat(value) ? floatOf(value) : value.text);
}

function floatOf({ text }: Plain): number {
  return Number(text.replaceAll("_", ""));
}
