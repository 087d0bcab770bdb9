/**
 * One JSON object a line: Caddy, Traefik, Envoy, nginx with `escape=json`, and services that log by themselves. The fields are found by the
 * names that these programs give them; dots lead into objects.
 */
import { type LogFormat, type LogRequest, parseRequestLine, type ReadLine, withoutPort } from "./log-request.js";
import { parseAnyTime } from "./log-time.js";

type Fields = Readonly<Record<string, unknown>>;

/** The first that is there counts. Names are the documented ones of Caddy, Traefik, Envoy, nginx, pino-http and OpenTelemetry. */
const names = {
  start: ["StartUTC", "start_time", "startTime", "StartLocal"],
  end: ["ts", "time_iso8601", "time_local", "msec", "@timestamp", "timestamp", "time"],
  method: [
    "request.method",
    "RequestMethod",
    "method",
    "request_method",
    "req.method",
    "http.request.method",
    "httpRequest.requestMethod",
  ],
  target: [
    "request.uri",
    "RequestPath",
    "path",
    "request_uri",
    "uri",
    "req.url",
    "url.path",
    "url",
    "httpRequest.requestUrl",
  ],
  request: ["request"],
  host: [
    "request.host",
    "RequestHost",
    "authority",
    ":authority",
    "host",
    "http_host",
    "req.headers.host",
    "server.address",
  ],
  peer: [
    "request.remote_ip",
    "ClientHost",
    "downstream_remote_address",
    "remote_addr",
    "client_ip",
    "request.remote_addr",
    "req.remoteAddress",
    "client.address",
    "ip",
    "httpRequest.remoteIp",
  ],
  headers: ["request.headers", "req.headers", "headers"],
} as const;

/** With the unit of each in ms. */
const durations: readonly (readonly [name: string, unitMs: number])[] = [
  ["Duration", 1e-6],
  ["duration_ms", 1],
  ["responseTime", 1],
  ["request_time", 1_000],
];

const MOST_DEPTH = 6;

export const jsonFormat: LogFormat = { name: "json", reader: jsonReader };

function jsonReader(wanted: readonly string[]): ReadLine {
  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    const entry = parseObject(line);
    if (entry === undefined) return undefined;
    return requestOf(entry, wanted);
  };
}

function parseObject(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function requestOf(entry: Fields, wanted: readonly string[]): LogRequest | "blank" | undefined {
  const startMs = parseAnyTime(first(entry, names.start));
  const timeMs = startMs ?? parseAnyTime(first(entry, names.end));
  if (timeMs === undefined) return undefined;
  const line = first(entry, names.request);
  const requested = typeof line === "string" ? parseRequestLine(line) : undefined;
  const spelled = requested?.target ?? textOf(first(entry, names.target));
  // Programs log other things than requests: a start, a warning.
  if (spelled === undefined) return "blank";
  const absolute = spelled.startsWith("/") ? undefined : parseRequestLine(`GET ${spelled} HTTP/1.1`);
  const durationMs = durationOf(entry);
  return {
    atMs: startMs ?? timeMs - (durationMs ?? 0),
    durationMs,
    method: requested?.method ?? textOf(first(entry, names.method)) ?? "GET",
    target: absolute?.target ?? spelled,
    host: textOf(first(entry, names.host)) ?? absolute?.host ?? requested?.host,
    peer: withoutPort(textOf(first(entry, names.peer))),
    headers: headersOf(entry),
    fields: wanted.map((name) => textOf(read(entry, name))),
  };
}

function durationOf(entry: Fields): number | undefined {
  // Caddy says seconds, Envoy ms; Envoy's is a whole number, Caddy's never is one for long.
  const plain = entry.duration;
  if (typeof plain === "number" && plain >= 0) return "request" in entry ? plain * 1_000 : plain;
  for (const [name, unitMs] of durations) {
    const value = read(entry, name);
    const number = value === undefined || value === "" ? Number.NaN : Number(value);
    if (number >= 0 && number < 1e15) return number * unitMs;
  }
  return undefined;
}

function headersOf(entry: Fields): Record<string, string> {
  const headers: Record<string, string> = {};
  const add = (name: string, value: unknown): void => {
    const text = Array.isArray(value) ? value.join(", ") : textOf(value);
    if (text !== undefined) headers[name.toLowerCase()] = text;
  };
  const given = first(entry, names.headers);
  if (typeof given === "object" && given !== null) for (const [name, value] of Object.entries(given)) add(name, value);
  for (const [name, value] of Object.entries(entry)) {
    if (name.startsWith("http_")) add(name.slice("http_".length).replaceAll("_", "-"), value);
    // Traefik, where headers are kept: `request_User-Agent`.
    else if (/^request_[A-Z]/.test(name)) add(name.slice("request_".length), value);
    else if (name === "user_agent" || name === "x_forwarded_for") add(name.replaceAll("_", "-"), value);
  }
  return headers;
}

function first(entry: Fields, candidates: readonly string[]): unknown {
  for (const name of candidates) {
    const value = read(entry, name);
    if (value !== undefined && value !== null && value !== "" && value !== "-") return value;
  }
  return undefined;
}

function read(entry: Fields, name: string): unknown {
  if (Object.hasOwn(entry, name)) return entry[name];
  let value: unknown = entry;
  for (const step of name.split(".", MOST_DEPTH)) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Fields)[step];
  }
  return value;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" || value === "-" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}
