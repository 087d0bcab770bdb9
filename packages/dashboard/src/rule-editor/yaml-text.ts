/** Converts the draft to YAML and back, and finds a field's line in the text. */
import { LineCounter, parseDocument, stringify } from "yaml";
import type { Draft } from "./draft.js";

export function yamlOf(draft: Draft): string {
  return stringify(draft, { lineWidth: 0 });
}

type ParsedText = { readonly draft: Draft } | { readonly error: string };

export function parseYaml(text: string): ParsedText {
  const document = parseDocument(text, { prettyErrors: true });
  const [first] = document.errors;
  if (first !== undefined) {
    const line = first.linePos?.[0].line;
    const message = first.message.split(" at line", 1)[0]!;
    return { error: line === undefined ? message : `line ${line}: ${message}` };
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { draft: value as Draft };
    return { error: "expected a rule: fields and their values" };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** The line of `overrides[1].limit`, or of its nearest existing parent. */
export function lineOf(text: string, path: string): number | undefined {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const steps = path
    .split(/[.[\]]+/)
    .filter((step) => step !== "")
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  for (let length = steps.length; length > 0; length--) {
    const node = document.getIn(steps.slice(0, length), true) as { range?: [number, number, number] } | undefined;
    if (node?.range !== undefined) return lines.linePos(node.range[0]).line;
  }
  return undefined;
}
