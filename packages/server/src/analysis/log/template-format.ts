/**
 * Formats that are one line of fixed text and variables, spelled as nginx spells `log_format`. nginx, Apache, Traefik, Envoy and the load
 * balancers of AWS are templates too (`formats.ts`).
 * A line is read from left to right, once: its cost is linear, whatever it holds.
 */
import { SluiceError } from "sluice";
import { type LogFormat, type LogRequest, parseRequestLine, type ReadLine, withoutPort } from "./log-request.js";
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
  return { name, reader: (fields) => templateReader(compiled, { names, fields, timeIsEnd, isOpen }) };
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

/** The values of a line in the template's order; undefined if the line does not fit. */
function split(line: string, { start, parts }: Template, isOpen: boolean, values: string[]): boolean {
  if (!line.startsWith(start)) return false;
  let at = start.length;
  for (let i = 0; i < parts.length; i++) {
    const { until, isQuoted } = parts[i]!;
    const isLast = i === parts.length - 1;
    let end: number;
    if (isQuoted) end = endOfQuoted(line, at);
    else if (until === "") end = isOpen ? endOfWord(line, at) : line.length;
    else end = line.indexOf(until, at);
    // The last text of an open template may be the line's end.
    if (end < 0 && isLast && isOpen && !isQuoted) end = line.length;
    if (end < 0 || (!line.startsWith(until, end) && !(isLast && isOpen))) return false;
    values[i] = line.slice(at, end);
    at = end + until.length;
  }
  return isOpen || at >= line.length;
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
    fields,
    timeIsEnd,
    isOpen,
  }: { names: readonly string[]; fields: readonly string[]; timeIsEnd: boolean; isOpen: boolean },
): ReadLine {
  const values = new Array<string>(names.length).fill("");
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
  const headerAts = names.flatMap((name, at) => (name.startsWith("http_") ? [{ name: headerName(name), at }] : []));
  const fieldAts = fields.map((field) => names.indexOf(field.toLowerCase().replace(/^\$/, "")));
  const value = (at: number): string | undefined =>
    at < 0 || values[at] === "-" || values[at] === "" ? undefined : unescaped(values[at]!);

  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (!split(line, template, isOpen, values)) return undefined;
    const timeMs = timeOf(values[timeAt]!);
    if (timeMs === undefined) return undefined;
    const requested = requestAt >= 0 ? parseRequestLine(unescaped(values[requestAt]!)) : undefined;
    const target = requested?.target ?? value(targetAt);
    // A connection that sent nothing, or no HTTP, is in the log too.
    if (target === undefined) return "blank";
    const durationMs =
      durationOf(value(secondsAt), 1_000) ??
      durationOf(value(msAt), 1) ??
      sumOf(partAts.map((at) => durationOf(value(at), 1_000)));
    const headers: Record<string, string> = {};
    for (const { name, at } of headerAts) {
      const text = value(at);
      if (text !== undefined) headers[name] = text;
    }
    return {
      atMs: timeIsEnd ? timeMs - (durationMs ?? 0) : timeMs,
      durationMs,
      method: requested?.method ?? value(methodAt) ?? "GET",
      target,
      host: value(hostAt) ?? requested?.host,
      peer: withoutPort(value(peerAt)),
      headers,
      fields: fieldAts.map(value),
    };
  };
}

function headerName(variable: string): string {
  return variable.slice("http_".length).replaceAll("_", "-");
}

function durationOf(text: string | undefined, scale: number): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text.replace(/ms$/, ""));
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
