/**
 * W3C extended logs: a `#Fields:` line names the columns of those that follow. CloudFront writes them with tabs, IIS with spaces.
 */
import type { LogFormat, LogRequest, ReadLine, Wanted } from "./log-request.js";
import { parseIsoTime, rememberLast } from "./log-time.js";

export const w3cFormat: LogFormat = { name: "cloudfront", reader: w3cReader };

function w3cReader({ fields = [], headers: wantedHeaders }: Wanted): ReadLine {
  let headerColumns: [header: string, column: string][] = [];
  let columns = new Map<string, number>();
  const timeOf = rememberLast(parseIsoTime);
  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:")) {
        columns = columnsOf(line.slice(8));
        headerColumns = headersAmong(columns.keys()).filter(([header]) => wantedHeaders?.has(header) ?? true);
      }
      return "blank";
    }
    const values = line.split(line.includes("\t") ? "\t" : " ");
    const value = (...candidates: string[]): string | undefined => {
      for (const name of candidates) {
        const text = values[columns.get(name) ?? -1];
        if (text !== undefined && text !== "" && text !== "-") return text;
      }
      return undefined;
    };
    const endMs = timeOf(`${value("date")}T${value("time")}`);
    const path = value("cs-uri-stem");
    if (endMs === undefined || path === undefined) return undefined;
    const query = value("cs-uri-query");
    const durationMs = durationOf(value("time-taken"), columns.has("x-edge-location"));
    const headers: Record<string, string> = {};
    for (const [header, column] of headerColumns) {
      const text = value(column);
      if (text !== undefined) headers[header] = decoded(text);
    }
    return {
      atMs: endMs - (durationMs ?? 0),
      durationMs,
      method: value("cs-method") ?? "GET",
      target: query === undefined ? path : `${path}?${query}`,
      host: value("x-host-header", "cs(host)", "cs-host"),
      peer: value("c-ip"),
      headers,
      fields: fields.map((name) => value(name.toLowerCase())),
    };
  };
}

function columnsOf(names: string): Map<string, number> {
  const each = names.trim().split(/[\t ]+/);
  return new Map(each.map((name, at) => [name.toLowerCase(), at]));
}

/** `cs(User-Agent)` is a header of the request. */
function headersAmong(columns: Iterable<string>): [header: string, column: string][] {
  return [...columns].flatMap((column) => {
    const header = /^cs\(([^)]+)\)$/.exec(column)?.[1];
    return header === undefined ? [] : [[header, column]];
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
