/**
 * Selects the header fields that a proxy forwards, without the hop-by-hop ones (RFC 9110, section 7.6.1). Pure.
 * Forwarded fields keep their spelling, order and repetition.
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
  /** Further names to drop; called with lower case. */
  readonly drop?: (name: string) => boolean;
  /** Names that `Connection` must not remove, in lower case, because a decision used them. */
  readonly keep?: ReadonlySet<string>;
}

/** Returns the end-to-end fields as a new list. */
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

/** `Connection` must not remove these: the receiver would frame or route the message differently from us. */
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

/**
 * Reason phrases allowed by RFC 9112 (section 4), in Latin-1; others are replaced by the standard one, because Node parses more than it
 * writes.
 */
const reason = /^[\t\x20-\x7e\x80-\xff]*$/;

export function reasonOf({ statusCode = 0, statusMessage = "" }: IncomingMessage): string {
  return reason.test(statusMessage) ? statusMessage : (STATUS_CODES[statusCode] ?? "");
}

export function hasNoBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] === undefined && (length === undefined || length === "0");
}
