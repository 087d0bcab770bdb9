/**
 * Formats made of fixed text and variables, in the syntax of nginx's `log_format`. nginx, Apache, Traefik, Envoy and AWS load balancers are
 * templates too (`formats.ts`).
 * A line is scanned once from left to right, in linear time whatever it contains.
 */
import { SluiceError } from "sluice";
import type { LineReader, LogFormat, Wanted } from "./log-request.js";
import { compileTemplate, type Template } from "./template.js";
import { TemplateBytes } from "./template-bytes.js";
import { requestOf, rolesOf, timeVariables } from "./template-roles.js";
import { TemplateTexts } from "./template-texts.js";

interface TemplateOptions {
  readonly name: string;
  readonly template: string;
  /** Whether a line's time is the end of its request, when the log was written. */
  readonly timeIsEnd: boolean;
  /** Whether more text may follow the template. */
  readonly isOpen?: boolean;
}

export function templateFormat({ name, template, timeIsEnd, isOpen = false }: TemplateOptions): LogFormat {
  const compiled = compileTemplate(template);
  mustHave(
    compiled.parts.map(({ variable }) => variable),
    template,
  );
  // Only if the fixed text is the same as a string and as bytes.
  const isPlain = PLAIN.test(template);
  return { name, reader: (wanted) => templateReader(compiled, { wanted, timeIsEnd, isOpen, isPlain }) };
}

/** ASCII without control characters and backslashes. */
const PLAIN = /^[\t\x20-\x5b\x5d-\x7e]*$/;

interface ReaderOptions {
  readonly wanted: Wanted;
  readonly timeIsEnd: boolean;
  readonly isOpen: boolean;
  readonly isPlain: boolean;
}

function templateReader(template: Template, { wanted, timeIsEnd, isOpen, isPlain }: ReaderOptions): LineReader {
  const roles = rolesOf(template, { wanted, timeIsEnd });
  const texts = new TemplateTexts(template, roles, isOpen);
  const text: LineReader["text"] = (line) => {
    if (line === "") return "blank";
    return texts.split(line) ? requestOf(roles, texts) : undefined;
  };
  if (!isPlain) return { text };
  const pieces = new TemplateBytes(template, roles, { isOpen, memos: wanted.memos });
  return {
    text,
    bytes: (bytes, from, end) => (pieces.split(bytes, from, end) ? (requestOf(roles, pieces) ?? "unread") : "unread"),
  };
}

function mustHave(names: readonly string[], template: string): void {
  const missing = [
    names.some((name) => Object.hasOwn(timeVariables, name)) ? undefined : "$time_local, $time_iso8601 or $msec",
    names.includes("request") || names.includes("request_uri") || names.includes("uri")
      ? undefined
      : "$request, $request_uri or $uri",
  ].filter((one) => one !== undefined);
  if (missing.length === 0) return;
  throw new SluiceError(
    "invalid-setting",
    `format: expected ${missing.join(" and ")} in the template, got ${JSON.stringify(template.slice(0, 200))}`,
  );
}
