/**
 * Rules as people keep them in files: YAML, or JSON. In: text. Out: what it says, not validated, with a way to find the line
 * of a mistake; or the mistakes that keep it from being read at all.
 */

import type { Mistake, Rule } from "sluice";
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  stringify,
  visit,
  Document as YamlDocument,
} from "yaml";
import { escapeInJson, printableLines } from "../printable.js";
import { MAX_DOCUMENT_BYTES } from "./document-text.js";
import { inFieldOrder } from "./field-order.js";
import { stepsOf } from "./rule-path.js";

/** Each alias repeats what it points at; a few lines of aliases of aliases could stand for gigabytes. */
const MOST_ALIASES = 100;

export interface PlacedMistake extends Mistake {
  /** From 1; absent where the text has no such place. */
  readonly line?: number;
  readonly column?: number;
}

type ReadFile =
  | { readonly document: unknown; readonly place: (mistakes: readonly Mistake[]) => PlacedMistake[] }
  | { readonly mistakes: readonly PlacedMistake[] };

export function readRuleFile(text: string): ReadFile {
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_DOCUMENT_BYTES) {
    return { mistakes: [{ path: "document", message: `expected at most ${MAX_DOCUMENT_BYTES} bytes, got ${bytes}` }] };
  }
  const json = readJson(text);
  if (json !== undefined) return { document: json.value, place: (mistakes) => placed(text, mistakes) };
  const lines = new LineCounter();
  const yaml = parse(text, lines);
  if (yaml.errors.length > 0) {
    return {
      mistakes: yaml.errors.map((error) => ({
        path: "document",
        message: error.message,
        line: lines.linePos(error.pos[0]).line,
        column: lines.linePos(error.pos[0]).col,
      })),
    };
  }
  try {
    const document: unknown = yaml.toJS({ maxAliasCount: MOST_ALIASES });
    return { document, place: (mistakes) => inLineOrder(mistakes.map((mistake) => placedIn(yaml, lines, mistake))) };
  } catch (error) {
    // yaml's way to refuse aliases of aliases.
    const message = `expected at most ${MOST_ALIASES} aliases, got more (${(error as Error).message})`;
    return { mistakes: [{ path: "document", message }] };
  }
}

/**
 * YAML that reads back as the same rules: fields in the table's order, short lists on one line, and every character that a terminal would
 * act on as an escape.
 */
export function writeRuleFile(rules: readonly Rule[]): string {
  const document = new YamlDocument({ rules: rules.map(inFieldOrder) });
  visit(document, {
    Seq(_, node) {
      if (node.items.every(isScalar)) node.flow = true;
    },
    Scalar(_, node) {
      // Only double-quoted text has escapes.
      if (typeof node.value === "string" && printableLines(node.value) !== node.value) node.type = "QUOTE_DOUBLE";
    },
  });
  return escapeInJson(stringify(document, { lineWidth: 120, flowCollectionPadding: false }));
}

/** Machines write JSON, and it is read a hundred times faster than YAML; positions are looked for only when asked. */
function readJson(text: string): { value: unknown } | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function parse(text: string, lineCounter: LineCounter) {
  return parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: true, merge: false });
}

function placed(text: string, mistakes: readonly Mistake[]): PlacedMistake[] {
  const lines = new LineCounter();
  const yaml = parse(text, lines);
  return inLineOrder(mistakes.map((mistake) => placedIn(yaml, lines, mistake)));
}

function inLineOrder(mistakes: readonly PlacedMistake[]): PlacedMistake[] {
  return [...mistakes].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}

function placedIn(yaml: ReturnType<typeof parse>, lines: LineCounter, mistake: Mistake): PlacedMistake {
  const offset = offsetOf(yaml, stepsOf(mistake.path));
  if (offset === undefined) return mistake;
  const { line, col } = lines.linePos(offset);
  return { ...mistake, line, column: col };
}

/** Where the field (its name) or the list's item begins; for one that is missing, what it is missing from. */
function offsetOf(yaml: ReturnType<typeof parse>, path: readonly (string | number)[]): number | undefined {
  // A document may be the list alone, while paths begin with "rules".
  const steps = isSeq(yaml.contents) && path[0] === "rules" ? path.slice(1) : path;
  let node: unknown = yaml.contents;
  let offset = startOf(node);
  for (const step of steps) {
    const next = childOf(node, step);
    if (next === undefined) break;
    offset = startOf(isPair(next) ? next.key : next) ?? offset;
    node = isPair(next) ? next.value : next;
  }
  return offset;
}

function childOf(node: unknown, step: string | number): Pair | Node | undefined {
  if (isSeq(node) && typeof step === "number") return node.items[step] as Node | undefined;
  if (!isMap(node)) return undefined;
  return node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(step));
}

function startOf(node: unknown): number | undefined {
  return (node as { range?: readonly number[] } | null | undefined)?.range?.[0];
}
