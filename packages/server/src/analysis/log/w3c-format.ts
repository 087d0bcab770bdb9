/**
 * W3C extended logs: a `#Fields:` line names the columns of those that follow. CloudFront writes them with tabs, IIS with spaces.
 */
import type { LogFormat, LogRequest, ReadLine } from "./log-request.js";
import { parseIsoTime, rememberLast } from "./log-time.js";

export const w3cFormat: LogFormat = { name: "cloudfront", reader: w3cReader };

function w3cReader(wanted: readonly string[]): ReadLine {
  let columns = new Map<string, number>();
  const timeOf = rememberLast(parseIsoTime);
  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    if (line.startsWith("#")) {
      if (line.startsWith("#Fields:"))
        columns = new Map(
          line
            .slice(8)
            .trim()
            .split(/[\t ]+/)
            .map((name, at) => [name.toLowerCase(), at]),
        );
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
    for (const name of columns.keys()) {
      const header = /^cs\(([^)]+)\)$/.exec(name)?.[1];
      const text = header === undefined ? undefined : value(name);
      if (text !== undefined) headers[header!] = decoded(text);
    }
    return {
      atMs: endMs - (durationMs ?? 0),
      durationMs,
      method: value("cs-method") ?? "GET",
      target: query === undefined ? path : `${path}?${query}`,
      host: value("x-host-header", "cs(host)", "cs-host"),
      peer: value("c-ip"),
      headers,
      fields: wanted.map((name) => value(name.toLowerCase())),
    };
  };
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
