/** A request as an access log line of any format describes it. */
import type { Attributes } from "sluice";
import type { TimedLine } from "../../recording/recording-lines.js";
import { ByteMemo } from "./byte-memo.js";

export interface LogRequest {
  /** When the request arrived, in ms since the epoch. */
  readonly atMs: number;
  /** Undefined if the log does not say. */
  readonly durationMs: number | undefined;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  /** The remote address, as seen by the server. */
  readonly peer: string | undefined;
  /** In lower case; only those that the log has. */
  readonly headers: Readonly<Record<string, string>>;
  /** The values of the requested fields, in order. */
  readonly fields: readonly (string | undefined)[];
  /** Only in Sluice recordings, which need no mapping. */
  readonly attributes?: Attributes;
  /** Shared by requests with the same target. */
  readonly memo?: TargetMemo | undefined;
  /** The line of a recording: a decision, or a later event of one. */
  readonly recorded?: TimedLine;
}

/** Data derived from a target: the path it is checked by. Filled by the attribute reader. */
interface TargetMemo {
  path: string | undefined;
}

/** `blank`: neither a request nor a mistake: a comment, an empty line, a connection that sent nothing. */
export type ReadLine = (line: string) => LogRequest | "blank" | undefined;

/** The same from bytes, for a format's typical lines; `unread`: use the text reader. The two never differ (`byte-readers.test.ts`). */
export type ReadBytes = (bytes: Buffer, from: number, end: number) => LogRequest | "blank" | "unread";

/** Only what is wanted is extracted from a line: copying every header would cost more than the rest of the reading. */
export interface Wanted {
  /** Additional fields, by the format's own names. */
  readonly fields?: readonly string[] | undefined;
  /** In lower case. Absent: all that the log has. */
  readonly headers?: ReadonlySet<string> | undefined;
  /** Shared by the readers of several files. */
  readonly memos?: LogMemos | undefined;
}

/**
 * Interned strings of repeated values: clients and hosts; and separately, values of high cardinality: targets, request lines, and
 * user-defined fields.
 */
export class LogMemos {
  readonly texts = new ByteMemo((text) => text);
  readonly targets = new ByteMemo((text) => new Target(text));
  readonly requests = new ByteMemo(parseRequestLine);
  readonly rare = new ByteMemo((text) => text);
}

/** Readers of one file; the two share state. */
export interface LineReader {
  readonly text: ReadLine;
  /** Absent if every line must be read as text. */
  readonly bytes?: ReadBytes;
}

export interface LogFormat {
  readonly name: string;
  readonly reader: (wanted: Wanted) => LineReader;
}

export class Target implements TargetMemo {
  readonly text: string;
  path: string | undefined = undefined;

  constructor(text: string) {
    this.text = text;
  }
}

export interface RequestLine extends TargetMemo {
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
}

/** The method and target of `GET /path HTTP/1.1`; undefined if it is no request line (a TLS handshake on a plain-text port). */
export function parseRequestLine(line: string): RequestLine | undefined {
  const first = line.indexOf(" ");
  if (first <= 0) return undefined;
  const last = line.lastIndexOf(" ");
  const target = line.slice(first + 1, last > first && line.startsWith("HTTP/", last + 1) ? last : undefined);
  if (!isMethod(line, first) || target === "") return undefined;
  const method = line.slice(0, first);
  if (target.startsWith("/") || target === "*") return { method, target, host: undefined, path: undefined };
  // Absolute form: sent to proxies, logged by load balancers.
  const url = /^[a-z]+:\/\/([^/?#]*)(.*)$/i.exec(target);
  if (url === null) return undefined;
  const rest = url[2]!;
  return { method, host: url[1]!, target: rest.startsWith("/") ? rest : `/${rest}`, path: undefined };
}

/** Two to twenty capitals, with dashes allowed after the first. */
function isMethod(line: string, length: number): boolean {
  if (length < 2 || length > 20) return false;
  for (let at = 0; at < length; at++) {
    const code = line.charCodeAt(at);
    if ((code < 0x41 || code > 0x5a) && (code !== 0x2d || at === 0)) return false;
  }
  return true;
}

/** `10.0.0.1:443` and `[::1]:443` without the port. */
export function withoutPort(text: string | undefined): string | undefined {
  if (text === undefined || (!text.includes(":") && !text.startsWith("["))) return text;
  const found = /^\[([0-9a-fA-F:]+)\](?::\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text);
  return found === null ? text : (found[1] ?? found[2]);
}
