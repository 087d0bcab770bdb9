/**
 * What a template's variables mean, and how their values form a request: shared by the text and the byte reader.
 * In: the values of a line. Out: the request. Pure.
 */
import type { LogRequest, RequestLine, Wanted } from "./log-request.js";
import { parseEpoch, parseIsoTime, parseLocalTime } from "./log-time.js";
import type { Template } from "./template.js";

export const timeVariables: Readonly<Record<string, (text: string) => number | undefined>> = {
  time_local: parseLocalTime,
  time_iso8601: parseIsoTime,
  msec: parseEpoch,
};

/** Indexes of the variables in the template; -1 if absent. */
export interface TemplateRoles {
  readonly timeIsEnd: boolean;
  readonly timeVariable: string;
  readonly timeAt: number;
  readonly requestAt: number;
  readonly methodAt: number;
  readonly targetAt: number;
  readonly hostAt: number;
  readonly peerAt: number;
  readonly secondsAt: number;
  readonly msAt: number;
  /** AWS load balancers split the time into three parts; -1 if a part never ended. */
  readonly partAts: readonly number[];
  readonly headerAts: readonly { readonly name: string; readonly at: number }[];
  readonly fieldAts: readonly number[];
  /** By variable. */
  readonly isWanted: readonly boolean[];
}

/** The values of a line, by variable index. A dash, an empty value and a negative index mean absent. */
export interface Pieces {
  /** Undefined if it is no time. */
  readonly timeMs: () => number | undefined;
  readonly requestLine: (at: number) => RequestLine | undefined;
  readonly value: (at: number) => string | undefined;
  /** For headers and user-defined fields, which rarely repeat. */
  readonly rareValue: (at: number) => string | undefined;
  /** Without its port. */
  readonly peer: (at: number) => string | undefined;
  readonly durationMs: (at: number, scale: number) => number | undefined;
}

export function rolesOf(
  { parts }: Template,
  { wanted: { fields = [], headers }, timeIsEnd }: { wanted: Wanted; timeIsEnd: boolean },
): TemplateRoles {
  const names = parts.map(({ variable }) => variable);
  const place = (...wanted: string[]): number => names.findIndex((name) => wanted.includes(name));
  const timeAt = names.findIndex((name) => Object.hasOwn(timeVariables, name));
  const found = {
    timeAt,
    requestAt: place("request"),
    methodAt: place("request_method"),
    targetAt: place("request_uri", "uri"),
    hostAt: place("host", "http_host", "authority"),
    peerAt: place("remote_addr", "client_port"),
    secondsAt: place("request_time", "duration_s"),
    msAt: place("duration_ms"),
  };
  const partAts = names.flatMap((name, at) => (name.endsWith("_processing_time") ? [at] : []));
  const headerAts = names.flatMap((variable, at) => {
    const name = variable.startsWith("http_") ? headerName(variable) : undefined;
    return name !== undefined && (headers?.has(name) ?? true) ? [{ name, at }] : [];
  });
  const fieldAts = fields.map((field) => names.indexOf(field.toLowerCase().replace(/^\$/, "")));
  const taken = new Set([...Object.values(found), ...partAts, ...fieldAts, ...headerAts.map(({ at }) => at)]);
  const isWanted = names.map((_, at) => taken.has(at));
  return { ...found, timeIsEnd, timeVariable: names[timeAt]!, partAts, headerAts, fieldAts, isWanted };
}

function headerName(variable: string): string {
  return variable.slice("http_".length).replaceAll("_", "-");
}

export function requestOf(roles: TemplateRoles, pieces: Pieces): LogRequest | "blank" | undefined {
  const timeMs = pieces.timeMs();
  if (timeMs === undefined) return undefined;
  const { requestAt, headerAts, fieldAts } = roles;
  const requested = requestAt >= 0 ? pieces.requestLine(requestAt) : undefined;
  const target = requested?.target ?? pieces.value(roles.targetAt);
  // Connections that sent nothing, or no HTTP, are logged too.
  if (target === undefined) return "blank";
  const durationMs = durationOf(roles, pieces);
  return {
    atMs: roles.timeIsEnd ? timeMs - (durationMs ?? 0) : timeMs,
    durationMs,
    method: requested?.method ?? pieces.value(roles.methodAt) ?? "GET",
    target,
    host: pieces.value(roles.hostAt) ?? requested?.host,
    peer: pieces.peer(roles.peerAt),
    headers: headerAts.length === 0 ? NONE : headersOf(headerAts, pieces),
    fields: fieldAts.length === 0 ? NO_FIELDS : fieldAts.map((at) => pieces.rareValue(at)),
    memo: requested,
  };
}

function durationOf({ secondsAt, msAt, partAts }: TemplateRoles, pieces: Pieces): number | undefined {
  const whole = pieces.durationMs(secondsAt, 1_000) ?? pieces.durationMs(msAt, 1);
  if (whole !== undefined || partAts.length === 0) return whole;
  let sumMs: number | undefined;
  for (let i = 0; i < partAts.length; i++) {
    const partMs = pieces.durationMs(partAts[i]!, 1_000);
    if (partMs !== undefined) sumMs = (sumMs ?? 0) + partMs;
  }
  return sumMs;
}

function headersOf(headerAts: TemplateRoles["headerAts"], pieces: Pieces): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { name, at } of headerAts) {
    const text = pieces.rareValue(at);
    if (text !== undefined) headers[name] = text;
  }
  return headers;
}

const NONE: Readonly<Record<string, string>> = Object.freeze({});
const NO_FIELDS: readonly undefined[] = [];

/** `0.012`, `12` or `12ms`. */
export function durationIn(text: string): number | undefined {
  const number = Number(text.endsWith("ms") ? text.slice(0, -2) : text);
  return number >= 0 && number < MOST_DURATION ? number : undefined;
}

export const MOST_DURATION = 1e9;
