/**
 * W3C extended logs: a `#Fields:` line names the columns of those that follow. CloudFront writes them with tabs, IIS with spaces.
 */
import type { LogFormat, LogRequest, ReadLine, Wanted } from "./log-request.js";
import { parseIsoTime, rememberLast } from "./log-time.js";

export const w3cFormat: LogFormat = { name: "cloudfront", reader: w3cReader };

/** Where the columns of a log stand that are read. */
interface Columns {
  readonly date: number;
  readonly time: number;
  readonly path: number;
  readonly query: number;
  readonly method: number;
  /** The first that is given counts. */
  readonly hosts: readonly number[];
  readonly peer: number;
  readonly taken: number;
  readonly isCloudFront: boolean;
  readonly headers: readonly { readonly name: string; readonly at: number }[];
  readonly fields: readonly number[];
}

function w3cReader({ fields = [], headers }: Wanted): ReadLine {
  let columns = columnsOf("", fields, headers);
  let values: string[] = [];
  const timeOf = rememberLast(parseIsoTime);
  const value = (at: number): string | undefined => {
    const text = values[at];
    return text === undefined || text === "" || text === "-" ? undefined : text;
  };
  const hostOf = (): string | undefined => {
    for (const at of columns.hosts) {
      const text = value(at);
      if (text !== undefined) return text;
    }
    return undefined;
  };
  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:")) columns = columnsOf(line.slice(8), fields, headers);
      return "blank";
    }
    values = line.split(line.includes("\t") ? "\t" : " ");
    const endMs = timeOf(`${value(columns.date)}T${value(columns.time)}`);
    const path = value(columns.path);
    if (endMs === undefined || path === undefined) return undefined;
    const query = value(columns.query);
    const durationMs = durationOf(value(columns.taken), columns.isCloudFront);
    return {
      atMs: endMs - (durationMs ?? 0),
      durationMs,
      method: value(columns.method) ?? "GET",
      target: query === undefined ? path : `${path}?${query}`,
      host: hostOf(),
      peer: value(columns.peer),
      headers: columns.headers.length === 0 ? NONE : headersOf(columns.headers, value),
      fields: columns.fields.length === 0 ? NO_FIELDS : columns.fields.map(value),
    };
  };
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_FIELDS: readonly undefined[] = [];

function headersOf(columns: Columns["headers"], value: (at: number) => string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { name, at } of columns) {
    const text = value(at);
    if (text !== undefined) headers[name] = decoded(text);
  }
  return headers;
}

function columnsOf(line: string, fields: readonly string[], headers: ReadonlySet<string> | undefined): Columns {
  const each = line.trim().split(/[\t ]+/);
  const places = new Map(each.map((name, at) => [name.toLowerCase(), at]));
  const at = (name: string): number => places.get(name) ?? -1;
  return {
    date: at("date"),
    time: at("time"),
    path: at("cs-uri-stem"),
    query: at("cs-uri-query"),
    method: at("cs-method"),
    hosts: [at("x-host-header"), at("cs(host)"), at("cs-host")],
    peer: at("c-ip"),
    taken: at("time-taken"),
    isCloudFront: places.has("x-edge-location"),
    headers: headersAmong(places, headers),
    fields: fields.map((name) => at(name.toLowerCase())),
  };
}

/** `cs(User-Agent)` is a header of the request. */
function headersAmong(
  places: ReadonlyMap<string, number>,
  wanted: ReadonlySet<string> | undefined,
): { name: string; at: number }[] {
  return [...places].flatMap(([column, at]) => {
    const name = /^cs\(([^)]+)\)$/.exec(column)?.[1];
    return name !== undefined && (wanted?.has(name) ?? true) ? [{ name, at }] : [];
  });
}

/** CloudFront counts seconds, IIS ms. */
function durationOf(text: string | undefined, isCloudFront: boolean): number | undefined {
  const number = text === undefined ? Number.NaN : Number(text);
  return number >= 0 && number < 1e9 ? number * (isCloudFront ? 1_000 : 1) : undefined;
}

/** CloudFront escapes what would break a column. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
