/** One request as a line of an access log describes it, in any format. */
import type { Attributes } from "sluice";
import type { TimedLine } from "../../recording/recording-lines.js";

export interface LogRequest {
  /** When the request arrived, in ms since the epoch. */
  readonly atMs: number;
  /** How long it took; undefined where the log does not say. */
  readonly durationMs: number | undefined;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  /** The other end of the connection, as the server saw it. */
  readonly peer: string | undefined;
  /** In lower case; only what the log has. */
  readonly headers: Readonly<Record<string, string>>;
  /** The values of the fields that were asked for, in their order. */
  readonly fields: readonly (string | undefined)[];
  /** Only in a recording of Sluice, which needs no mapping. */
  readonly attributes?: Attributes;
  /** The line of a recording: a decision, or what became of one. */
  readonly recorded?: TimedLine;
}

/** `blank`: a line that is no request and no mistake: a comment, an empty line, a connection that sent nothing. */
export type ReadLine = (line: string) => LogRequest | "blank" | undefined;

export interface LogFormat {
  readonly name: string;
  /** `fields`: what else of a line is wanted, by the format's own names. Readers may keep state: one for each file. */
  readonly reader: (fields: readonly string[]) => ReadLine;
}

/** The method and the target of `GET /path HTTP/1.1`; undefined for what is no request line (a TLS handshake on a plain port). */
export function parseRequestLine(line: string): { method: string; target: string; host?: string } | undefined {
  const first = line.indexOf(" ");
  if (first <= 0) return undefined;
  const last = line.lastIndexOf(" ");
  const target = line.slice(first + 1, last > first && line.startsWith("HTTP/", last + 1) ? last : undefined);
  const method = line.slice(0, first);
  if (!/^[A-Z][A-Z-]{1,19}$/.test(method) || target === "") return undefined;
  if (target.startsWith("/") || target === "*") return { method, target };
  // The absolute form: proxies get it, load balancers write it.
  const url = /^[a-z]+:\/\/([^/?#]*)(.*)$/i.exec(target);
  if (url === null) return undefined;
  const rest = url[2]!;
  return { method, host: url[1]!, target: rest.startsWith("/") ? rest : `/${rest}` };
}

/** `10.0.0.1:443` and `[::1]:443` without the port. */
export function withoutPort(text: string | undefined): string | undefined {
  const found = text === undefined ? null : /^\[([0-9a-fA-F:]+)\](?::\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text);
  return found === null ? text : (found[1] ?? found[2]);
}
