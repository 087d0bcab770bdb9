/**
 * W3C extended logs: a `#Fields:` line names the columns of the lines that follow. CloudFront separates them with tabs, IIS with spaces.
 */
import type { LineReader, LogFormat, LogRequest, Wanted } from "./log-request.js";
import { parseIsoTime, rememberLast } from "./log-time.js";
import { W3cBytes } from "./w3c-bytes.js";
import { type Columns, columnsOf } from "./w3c-columns.js";

export const w3cFormat: LogFormat = { name: "cloudfront", reader: w3cReader };

function w3cReader({ fields = [], headers, memos }: Wanted): LineReader {
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
  const pieces = new W3cBytes(memos);
  pieces.columns = columns;
  const text = (line: string): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:")) {
        columns = columnsOf(line.slice(8), fields, headers);
        pieces.columns = columns;
      }
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
  return { text, bytes: (bytes, from, end) => pieces.read(bytes, from, end) ?? "unread" };
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

/** Seconds for CloudFront, milliseconds for IIS. */
function durationOf(text: string | undefined, isCloudFront: boolean): number | undefined {
  const number = text === undefined ? Number.NaN : Number(text);
  return number >= 0 && number < 1e9 ? number * (isCloudFront ? 1_000 : 1) : undefined;
}

/** CloudFront percent-encodes what would break a column. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
