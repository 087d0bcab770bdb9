/**
 * One JSON object per line: Caddy, Traefik, Envoy, nginx with `escape=json`, and services' own logs. Fields are found by the names that
 * these programs use; dots descend into objects.
 * An entry is walked once, by the names that it has: looking up every known name would cost more than parsing it. If neither headers nor
 * user-defined fields are wanted, it is scanned as bytes and never becomes an object (`json-scan.ts`).
 */
import { LastTime } from "./byte-values.js";
import { JsonScan } from "./json-scan.js";
import {
  type LineReader,
  type LogFormat,
  LogMemos,
  type LogRequest,
  parseRequestLine,
  type ReadBytes,
  type ReadLine,
  Target,
  type Wanted,
  withoutPort,
} from "./log-request.js";
import { parseAnyTime } from "./log-time.js";

type Fields = Readonly<Record<string, unknown>>;

/** The first present name wins. Names as documented by Caddy, Traefik, Envoy, nginx, pino-http and OpenTelemetry. */
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
  nanoseconds: ["Duration"],
  milliseconds: ["duration_ms", "responseTime"],
  seconds: ["request_time"],
  /** Milliseconds for Envoy, seconds for Caddy. */
  duration: ["duration"],
} as const;

type Role = keyof typeof names;

/** `at`: the role's index in `roles`. A lower rank wins. */
interface RankedRole {
  readonly at: number;
  readonly rank: number;
}

/** What a name stands for, and the names nested in it. */
interface Name {
  role?: RankedRole;
  inner?: Map<string, Name>;
}

const roles = Object.keys(names) as Role[];
const places = Object.fromEntries(roles.map((role, at) => [role, at])) as { readonly [R in Role]: number };
const UNRANKED = Number.MAX_SAFE_INTEGER;
const known = knownNames();

function knownNames(): Map<string, Name> {
  const all = new Map<string, Name>();
  const at = (inside: Map<string, Name>, step: string): Name => {
    const found = inside.get(step) ?? {};
    inside.set(step, found);
    return found;
  };
  for (const [role, candidates] of Object.entries(names) as [Role, readonly string[]][]) {
    candidates.forEach((candidate, rank) => {
      const found = { at: places[role], rank };
      // `http.request.method` may be a literal name, or a path into objects.
      at(all, candidate).role = found;
      const steps = candidate.split(".");
      let inside = all;
      for (const step of steps.slice(0, -1)) {
        const name = at(inside, step);
        name.inner ??= new Map();
        inside = name.inner;
      }
      at(inside, steps.at(-1)!).role = found;
    });
  }
  return all;
}

const MOST_DEPTH = 6;

export const jsonFormat: LogFormat = {
  name: "json",
  reader: (wanted): LineReader => ({ text: jsonReader(wanted), bytes: jsonByteReader(wanted) }),
};

/** Only if neither headers nor user-defined fields are wanted, as these may be anywhere. */
function jsonByteReader({ fields = [], headers, memos = new LogMemos() }: Wanted): ReadBytes {
  if (headers?.size !== 0 || fields.length > 0) return () => "unread";
  const found = new Found();
  const startTime = new LastTime(parseAnyTime);
  const endTime = new LastTime(parseAnyTime);
  const scan = new JsonScan<RankedRole>({
    names: known,
    report: (role, value) => found.add(role, value),
    isWanted: (role) => found.wants(role),
    textOf({ at }, bytes, from, end) {
      if (at === places.start) return instantIn(startTime, bytes, from, end);
      if (at === places.end) return instantIn(endTime, bytes, from, end);
      return at === places.target && end - from > 0 && !isDash(bytes, from, end)
        ? memos.targets.get(bytes, from, end)
        : memos.texts.get(bytes, from, end);
    },
  });
  return (bytes, from, end) => {
    found.clear();
    return scan.scan(bytes, from, end) ? (found.request(NONE, NO_FIELDS) ?? "unread") : "unread";
  };
}

/** Programs write a dash for an absent value. */
function isDash(bytes: Buffer, from: number, end: number): boolean {
  return end - from === 1 && bytes[from] === 0x2d;
}

/** A time parsed from bytes; `ms` is NaN if it is none. */
class Instant {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }
}

/** A single character is kept as text: it may be a dash, which means absent. */
function instantIn(time: LastTime, bytes: Buffer, from: number, end: number): Instant | string {
  return end - from > 1 ? new Instant(time.read(bytes, from, end)) : bytes.toString("latin1", from, end);
}

function timeOf(value: unknown): number | undefined {
  if (!(value instanceof Instant)) return parseAnyTime(value);
  return Number.isNaN(value.ms) ? undefined : value.ms;
}

function jsonReader({ fields = [], headers }: Wanted): ReadLine {
  const found = new Found();
  const paths = fields.map((name) => ({ name, steps: name.split(".", MOST_DEPTH) }));
  return (line): LogRequest | "blank" | undefined => {
    if (line === "") return "blank";
    const entry = parseObject(line);
    if (entry === undefined) return undefined;
    found.read(entry);
    return found.request(
      headers?.size === 0 ? NONE : headersOf(entry, found.get(places.headers), headers),
      paths.length === 0 ? NO_FIELDS : paths.map((path) => textOf(read(entry, path))),
    );
  };
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_FIELDS: readonly undefined[] = [];

function parseObject(line: string): Fields | undefined {
  if (!line.startsWith("{") && !line.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

/** An entry's values by role; of several, the first name in the list wins. Reused for all lines. */
class Found {
  readonly #values: unknown[] = roles.map(() => undefined);
  readonly #ranks: number[] = roles.map(() => UNRANKED);

  #isCaddy = false;

  clear(): void {
    // Values without a rank are left over from earlier lines.
    const ranks = this.#ranks;
    for (let at = 0; at < ranks.length; at++) ranks[at] = UNRANKED;
    this.#isCaddy = false;
  }

  read(entry: Fields): void {
    this.clear();
    this.#walk(entry, known);
  }

  /** False if a higher-ranked value is present; but a request always counts, as it identifies Caddy. */
  wants({ at, rank }: RankedRole): boolean {
    return rank < this.#ranks[at]! || at === places.request;
  }

  add(role: RankedRole, value: unknown): void {
    if (role.at === places.request) this.#isCaddy = true;
    if (!isSaid(value) || role.rank >= this.#ranks[role.at]!) return;
    this.#ranks[role.at] = role.rank;
    this.#values[role.at] = value;
  }

  /** `at`: the role's index. */
  get(at: number): unknown {
    return this.#ranks[at] === UNRANKED ? undefined : this.#values[at];
  }

  #walk(entry: Fields, inside: ReadonlyMap<string, Name>): void {
    for (const key in entry) {
      const name = inside.get(key);
      if (name === undefined) continue;
      const value = entry[key];
      if (name.role !== undefined) this.add(name.role, value);
      if (name.inner !== undefined && typeof value === "object" && value !== null)
        this.#walk(value as Fields, name.inner);
    }
  }

  request(headers: LogRequest["headers"], fields: LogRequest["fields"]): LogRequest | "blank" | undefined {
    const startMs = timeOf(this.get(places.start));
    const timeMs = startMs ?? timeOf(this.get(places.end));
    if (timeMs === undefined) return undefined;
    const request = this.get(places.request);
    const requested = typeof request === "string" ? parseRequestLine(request) : undefined;
    const target = this.get(places.target);
    const spelled = requested?.target ?? (target instanceof Target ? target.text : textOf(target));
    // Programs also log other events: a start, a warning.
    if (spelled === undefined) return "blank";
    const absolute = spelled.startsWith("/") ? undefined : parseRequestLine(`GET ${spelled} HTTP/1.1`);
    const durationMs = this.#durationMs(this.#isCaddy);
    return {
      atMs: startMs ?? timeMs - (durationMs ?? 0),
      durationMs,
      method: requested?.method ?? textOf(this.get(places.method)) ?? "GET",
      target: absolute?.target ?? spelled,
      host: textOf(this.get(places.host)) ?? absolute?.host ?? requested?.host,
      peer: withoutPort(textOf(this.get(places.peer))),
      headers,
      fields,
      memo: target instanceof Target && requested === undefined && absolute === undefined ? target : undefined,
    };
  }

  #durationMs(isCaddy: boolean): number | undefined {
    const duration = this.get(places.duration);
    if (typeof duration === "number" && duration >= 0) return bounded(isCaddy ? duration * 1_000 : duration);
    return (
      scaled(this.get(places.nanoseconds), 1e-6) ??
      scaled(this.get(places.milliseconds), 1) ??
      scaled(this.get(places.seconds), 1_000)
    );
  }
}

/** Programs write an empty string or a dash for an absent value. */
function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && value !== "-";
}

function scaled(value: unknown, unitMs: number): number | undefined {
  const number = typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN;
  return number >= 0 ? bounded(number * unitMs) : undefined;
}

/** Thirty years. A longer one is a bug in the log, and would place the request before the earliest possible Date. */
const MOST_DURATION_MS = 1e12;

function bounded(durationMs: number): number | undefined {
  return durationMs < MOST_DURATION_MS ? durationMs : undefined;
}

function headersOf(entry: Fields, given: unknown, wanted: ReadonlySet<string> | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  const add = (spelled: string, value: unknown): void => {
    const name = spelled.toLowerCase();
    if (wanted?.has(name) === false) return;
    const text = Array.isArray(value) ? value.join(", ") : textOf(value);
    if (text !== undefined) headers[name] = text;
  };
  if (typeof given === "object" && given !== null) for (const [name, value] of Object.entries(given)) add(name, value);
  for (const name in entry) {
    if (name.startsWith("http_")) add(name.slice("http_".length).replaceAll("_", "-"), entry[name]);
    // Traefik, if configured to keep headers: `request_User-Agent`.
    else if (/^request_[A-Z]/.test(name)) add(name.slice("request_".length), entry[name]);
    else if (name === "user_agent" || name === "x_forwarded_for") add(name.replaceAll("_", "-"), entry[name]);
  }
  return headers;
}

function read(entry: Fields, { name, steps }: { name: string; steps: readonly string[] }): unknown {
  if (Object.hasOwn(entry, name)) return entry[name];
  let value: unknown = entry;
  for (const step of steps) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Fields)[step];
  }
  return value;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value === "" || value === "-" ? undefined : value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}
