/**
 * Which header fields a proxy passes on, and which belong to one connection only (RFC 9110, section 7.6.1). Pure.
 * Fields stay as they came: spelling, order and repetition.
 */

import { type IncomingMessage, STATUS_CODES } from "node:http";

/** Node's `rawHeaders`: name, value, name, value. */
type RawHeaders = readonly string[];

const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
]);

interface Dropping {
  /** More names to leave out; asked in lower case. */
  readonly drop?: (name: string) => boolean;
  /** Names that `Connection` cannot remove, in lower case: a decision was made by them. */
  readonly keep?: ReadonlySet<string>;
}

/** The fields that may travel on, as a new list. */
export function endToEnd(raw: RawHeaders, { drop = () => false, keep }: Dropping = {}): string[] {
  const named = namedByConnection(raw);
  const kept: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase();
    if (hopByHop.has(name) || drop(name) || (named.has(name) && keep?.has(name) !== true)) continue;
    kept.push(raw[i]!, raw[i + 1]!);
  }
  return kept;
}

/** A message may not name these for removal: the receiver would frame or route it differently from us. */
const notForRemoval = new Set(["content-length", "host", "cookie", "authorization", "content-type"]);

function namedByConnection(raw: RawHeaders): Set<string> {
  const named = new Set<string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.toLowerCase() !== "connection") continue;
    for (const option of raw[i + 1]!.split(",")) {
      const name = option.trim().toLowerCase();
      if (!notForRemoval.has(name)) named.add(name);
    }
  }
  return named;
}

/** As RFC 9112 (section 4) allows it, in Latin-1; else the usual one, for Node reads more than it writes. */
const reason = /^[\t\x20-\x7e\x80-\xff]*$/;

export function reasonOf({ statusCode = 0, statusMessage = "" }: IncomingMessage): string {
  return reason.test(statusMessage) ? statusMessage : (STATUS_CODES[statusCode] ?? "");
}

export function hasNoBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] === undefined && (length === undefined || length === "0");
}
