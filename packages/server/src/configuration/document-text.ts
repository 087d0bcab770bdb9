/**
 * A rule document as the text that is stored, cached and sent: JSON with one rule a line, and one override a line.
 *
 *   {"rules":[
 *   {"id":"a",...},
 *   {"id":"b",...,"overrides":[
 *   {"match":{"user":"acme"},"limit":5000}
 *   ]}
 *   ]}
 *
 * Any JSON parser reads it. We read and write it line by line, because one JSON.parse of five megabytes would hold up every
 * check for 60 ms. Text of another form is parsed in one go. Nothing is validated here.
 */
import { createHash } from "node:crypto";
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { inFieldOrder, overrideInFieldOrder } from "./field-order.js";

/** Longer documents are refused wherever they come from. 10 000 rules with 100 000 overrides take about five megabytes. */
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

const OPENING = '{"rules":[';
const CLOSING = "]}";
const OPENS_OVERRIDES = '"overrides":[';

export async function writeDocument(rules: readonly Rule[], slice: TimeSlice): Promise<string> {
  // Joined portion by portion: a string grown by a hundred thousand additions is copied together at its first use, in one go.
  const portions: string[] = [];
  let portion = `${OPENING}\n`;
  const write = async (line: string) => {
    portion += line;
    if (!slice.isOver()) return;
    portions.push(Buffer.from(portion).toString());
    portion = "";
    await slice.next();
  };
  for (let i = 0; i < rules.length; i++) {
    const { overrides = [], ...rest } = rules[i]!;
    const line = JSON.stringify(inFieldOrder(rest as Rule));
    const end = i === rules.length - 1 ? "\n" : ",\n";
    if (overrides.length === 0) {
      await write(`${line}${end}`);
      continue;
    }
    await write(`${line.slice(0, -1)},${OPENS_OVERRIDES}\n`);
    for (let j = 0; j < overrides.length; j++) {
      const override = JSON.stringify(overrideInFieldOrder(overrides[j]!));
      await write(`${override}${j === overrides.length - 1 ? "\n" : ",\n"}`);
    }
    await write(`${CLOSING}${end}`);
  }
  portions.push(`${portion}${CLOSING}\n`);
  return portions.join("");
}

const written = new WeakMap<readonly Rule[], Promise<Buffer>>();

/** The document of rules in force, in UTF-8: written once, however many pages and scripts list them, and forgotten with them. */
export function documentOf(rules: readonly Rule[]): Promise<Buffer> {
  let bytes = written.get(rules);
  if (bytes === undefined) {
    // In slices: stringifying ten thousand rules at once would hold up checks.
    bytes = writeDocument(rules, new TimeSlice()).then((text) => Buffer.from(text));
    written.set(rules, bytes);
  }
  return bytes;
}

/** For rules whose document is at hand: it is not written again. */
export function keepDocument(rules: readonly Rule[], document: Buffer): void {
  written.set(rules, Promise.resolve(document));
}

/** Throws SyntaxError for what is no JSON. The result is not validated. */
export async function readDocument(text: string, slice: TimeSlice): Promise<unknown> {
  if (!text.startsWith(`${OPENING}\n`)) return JSON.parse(text);
  try {
    return await readLines(text, slice);
  } catch {
    // Not quite our form, or broken: the parser knows, and says where.
    return JSON.parse(text);
  }
}

async function readLines(text: string, slice: TimeSlice): Promise<unknown> {
  const rules: unknown[] = [];
  let overrides: unknown[] | undefined;
  let at = OPENING.length + 1;
  for (;;) {
    if (slice.isOver()) await slice.next();
    const end = text.indexOf("\n", at);
    if (end < 0) throw new SyntaxError("the document has no end");
    const line = text[end - 1] === "," ? text.slice(at, end - 1) : text.slice(at, end);
    at = end + 1;
    if (line === CLOSING) {
      if (overrides !== undefined) overrides = undefined;
      else if (text.slice(at).trim() === "") return { rules };
      else throw new SyntaxError("text after the end");
    } else if (overrides !== undefined) {
      overrides.push(JSON.parse(line));
    } else if (line.endsWith(OPENS_OVERRIDES)) {
      const rule = JSON.parse(`${line}${CLOSING}`) as { overrides: unknown[] };
      overrides = rule.overrides;
      rules.push(rule);
    } else {
      rules.push(JSON.parse(line));
    }
  }
}

/** Tells one text from another: what a cache or a snapshot returns is compared with what the database holds. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
