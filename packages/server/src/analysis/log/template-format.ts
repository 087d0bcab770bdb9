/**
 * Formats that are one line of fixed text and variables, spelled as nginx spells `log_format`. nginx, Apache, Traefik, Envoy and the load
 * balancers of AWS are templates too (`formats.ts`).
 * A line is read from left to right, once: its cost is linear, whatever it holds.
 */
import { SluiceError } from "sluice";
import {
  type LogFormat,
  type LogRequest,
  parseRequestLine,
  type ReadLine,
  type Wanted,
  withoutPort,
} from "./log-request.js";
import { parseEpoch, parseIsoTime, parseLocalTime, rememberLast } from "./log-time.js";

interface TemplateOptions {
  readonly name: string;
  readonly template: string;
  /** Whether a line's time is that of its request's end: the log was written then. */
  readonly timeIsEnd: boolean;
  /** Whether more may follow after the template. */
  readonly isOpen?: boolean;
}

interface Part {
  readonly variable: string;
  /** The text between this variable and the next one. */
  readonly until: string;
  /** Between quotes, where a backslash escapes. */
  readonly isQuoted: boolean;
}

interface Template {
  readonly start: string;
  readonly parts: readonly Part[];
}

const VARIABLE = /\$(?:\{([a-z0-9_]+)\}|([a-z0-9_]+))/gi;

export function templateFormat({ name, template, timeIsEnd, isOpen = false }: TemplateOptions): LogFormat {
  const compiled = compileTemplate(template);
  const names = compiled.parts.map(({ variable }) => variable);
  mustHave(names, template);
  return { name, reader: (wanted) => templateReader(compiled, { names, wanted, timeIsEnd, isOpen }) };
}

function compileTemplate(text: string): Template {
  const variables = [...text.matchAll(VARIABLE)];
  const start = text.slice(0, variables[0]?.index ?? text.length);
  const parts = variables.map((found, i): Part => {
    const from = found.index + found[0].length;
    const until = text.slice(from, variables[i + 1]?.index ?? text.length);
    const isQuoted = text[found.index - 1] === '"' && until.startsWith('"');
    return { variable: (found[1] ?? found[2])!.toLowerCase(), until, isQuoted };
  });
  const doubled = parts.findIndex(({ until }, i) => until === "" && i < parts.length - 1);
  if (doubled >= 0) {
    const pair = `$${parts[doubled]!.variable}$${parts[doubled + 1]!.variable}`;
    throw new SluiceError(
      "invalid-setting",
      `format: expected text between two variables, got ${JSON.stringify(pair)}`,
    );
  }
  return { start, parts };
}

const timeVariables: Readonly<Record<string, (text: string) => number | undefined>> = {
  time_local: parseLocalTime,
  time_iso8601: parseIsoTime,
  msec: parseEpoch,
};

function mustHave(names: readonly string[], template: string): void {
  const missing = [
    names.some((name) => name in timeVariables) ? undefined : "$time_local, $time_iso8601 or $msec",
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

/** Takes the wanted values of a line, in the template's order. False if the line does not fit. */
function split(line: string, { start, parts }: Template, isOpen: boolean, values: Values): boolean {
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
    // The last text of an open template may be the line's end.
    if (end < 0 && isLast && isOpen && !isQuoted) end = line.length;
    if (end < 0 || (!line.startsWith(until, end) && !(isLast && isOpen))) return false;
    if (values.isWanted[i]) values.texts[i] = line.slice(at, end);
    at = end + until.length;
  }
  return isOpen || at >= line.length;
}

interface Values {
  readonly texts: string[];
  readonly isWanted: readonly boolean[];
}

function endOfWord(line: string, from: number): number {
  const end = line.indexOf(" ", from);
  return end < 0 ? line.length : end;
}

/** The quote that no backslash escapes. */
function endOfQuoted(line: string, from: number): number {
  for (let at = from; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === 0x5c) at++;
    else if (code === 0x22) return at;
  }
  return -1;
}

function templateReader(
  template: Template,
  {
    names,
    wanted: { fields = [], headers: wantedHeaders },
    timeIsEnd,
    isOpen,
  }: { names: readonly string[]; wanted: Wanted; timeIsEnd: boolean; isOpen: boolean },
): ReadLine {
  const texts = new Array<string>(names.length).fill("");
  const place = (...wanted: string[]): number => names.findIndex((name) => wanted.includes(name));
  const timeAt = names.findIndex((name) => name in timeVariables);
  const timeOf = rememberLast(timeVariables[names[timeAt]!]!);
  const requestAt = place("request");
  const methodAt = place("request_method");
  const targetAt = place("request_uri", "uri");
  const hostAt = place("host", "http_host", "authority");
  const peerAt = place("remote_addr", "client_port");
  const secondsAt = place("request_time", "duration_s");
  const msAt = place("duration_ms");
  // A load balancer of AWS splits the time into three; -1 where a part never ended.
  const partAts = names.flatMap((name, at) => (name.endsWith("_processing_time") ? [at] : []));
  const headerAts = names.flatMap((variable, at) => {
    const name = variable.startsWith("http_") ? headerName(variable) : undefined;
    return name !== undefined && (wantedHeaders?.has(name) ?? true) ? [{ name, at }] : [];
  });
  const fieldAts = fields.map((field) => names.indexOf(field.toLowerCase().replace(/^\$/, "")));
  const places = [timeAt, requestAt, methodAt, targetAt, hostAt, peerAt, secondsAt, msAt, ...partAts, ...fieldAts];
  const taken = new Set([...places, ...headerAts.map(({ at }) => at)]);
  const values: Values = { texts, isWanted: names.map((_, at) => taken.has(at)) };
  const value = (at: number): string | undefined =>
    at < 0 || texts[at] === "-" || texts[at] === "" ? undefined : unescaped(texts[at]!);
  const headersOf = (): Record<string, string> => {
    const headers: Record<string, string> = {};
    for (const { name, at } of headerAts) {
      const text = value(at);
      if (text !== undefined) headers[name] = text;
    }
    return headers;
  };

  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (!split(line, template, isOpen, values)) return undefined;
    const timeMs = timeOf(texts[timeAt]!);
    if (timeMs === undefined) return undefined;
    const requested = requestAt >= 0 ? parseRequestLine(unescaped(texts[requestAt]!)) : undefined;
    const target = requested?.target ?? value(targetAt);
    // A connection that sent nothing, or no HTTP, is in the log too.
    if (target === undefined) return "blank";
    const durationMs =
      durationOf(value(secondsAt), 1_000) ??
      durationOf(value(msAt), 1) ??
      (partAts.length === 0 ? undefined : sumOf(partAts.map((at) => durationOf(value(at), 1_000))));
    const headers = headerAts.length === 0 ? NONE : headersOf();
    return {
      atMs: timeIsEnd ? timeMs - (durationMs ?? 0) : timeMs,
      durationMs,
      method: requested?.method ?? value(methodAt) ?? "GET",
      target,
      host: value(hostAt) ?? requested?.host,
      peer: withoutPort(value(peerAt)),
      headers,
      fields: fieldAts.length === 0 ? NO_FIELDS : fieldAts.map(value),
    };
  };
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_FIELDS: readonly undefined[] = [];

function headerName(variable: string): string {
  return variable.slice("http_".length).replaceAll("_", "-");
}

function durationOf(text: string | undefined, scale: number): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text.endsWith("ms") ? text.slice(0, -2) : text);
  return number >= 0 && number < 1e9 ? number * scale : undefined;
}

function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, part) => sum + part, 0);
}

/** nginx writes `\x22` for a quote, Apache and the load balancers `\"`. */
function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(?:x([0-9A-Fa-f]{2})|(["\\]))/g, (_, hex?: string, plain?: string) =>
    hex === undefined ? plain! : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
