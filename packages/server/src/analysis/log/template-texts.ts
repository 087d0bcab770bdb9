/** Reads a template's lines as text: the values of its variables, unescaped. */
import { parseRequestLine, type RequestLine, withoutPort } from "./log-request.js";
import { rememberLast } from "./log-time.js";
import type { Template } from "./template.js";
import { durationIn, type Pieces, type TemplateRoles, timeVariables } from "./template-roles.js";

export class TemplateTexts implements Pieces {
  readonly #template: Template;
  readonly #roles: TemplateRoles;
  readonly #isOpen: boolean;
  readonly #timeOf: (text: string) => number | undefined;
  /** For the line split last; only wanted values. */
  readonly #texts: string[];

  constructor(template: Template, roles: TemplateRoles, isOpen: boolean) {
    this.#template = template;
    this.#roles = roles;
    this.#isOpen = isOpen;
    this.#timeOf = rememberLast(timeVariables[roles.timeVariable]!);
    this.#texts = template.parts.map(() => "");
  }

  /** False if the line does not match. */
  split(line: string): boolean {
    const { start, parts } = this.#template;
    const { isWanted } = this.#roles;
    const isOpen = this.#isOpen;
    if (!line.startsWith(start)) return false;
    const hasEscapes = line.includes("\\");
    let at = start.length;
    for (let i = 0; i < parts.length; i++) {
      const { until, isQuoted } = parts[i]!;
      const isLast = i === parts.length - 1;
      let end: number;
      if (isQuoted) end = hasEscapes ? endOfQuoted(line, at) : line.indexOf('"', at);
      else if (until === "") end = isOpen ? endOfWord(line, at) : line.length;
      else end = line.indexOf(until, at);
      // The last value of an open template may extend to the end of the line.
      if (end < 0 && isLast && isOpen && !isQuoted) end = line.length;
      if (end < 0 || (!line.startsWith(until, end) && !(isLast && isOpen))) return false;
      if (isWanted[i]) this.#texts[i] = line.slice(at, end);
      at = end + until.length;
    }
    return isOpen || at >= line.length;
  }

  timeMs(): number | undefined {
    return this.#timeOf(this.#texts[this.#roles.timeAt]!);
  }

  requestLine(at: number): RequestLine | undefined {
    return parseRequestLine(unescaped(this.#texts[at]!));
  }

  value(at: number): string | undefined {
    if (at < 0) return undefined;
    const text = this.#texts[at]!;
    return text === "-" || text === "" ? undefined : unescaped(text);
  }

  rareValue(at: number): string | undefined {
    return this.value(at);
  }

  peer(at: number): string | undefined {
    return withoutPort(this.value(at));
  }

  durationMs(at: number, scale: number): number | undefined {
    const text = this.value(at);
    const number = text === undefined ? undefined : durationIn(text);
    return number === undefined ? undefined : number * scale;
  }
}

function endOfWord(line: string, from: number): number {
  const end = line.indexOf(" ", from);
  return end < 0 ? line.length : end;
}

/** The first unescaped quote. */
function endOfQuoted(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === 0x5c) at++;
    else if (code === 0x22) return at;
  }
  return -1;
}

/** nginx escapes a quote as `\x22`, Apache and load balancers as `\"`. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex?: string, plain?: string) =>
    hex === undefined ? plain! : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
