/**
 * The header fields that an upstream gets for a client's request: the client's own, and what this proxy says about it.
 * A stranger speaks for itself only: fields in which proxies name another client, host or path are passed on from trusted peers alone.
 */
import type { IncomingMessage } from "node:http";
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { endToEnd } from "./message-headers.js";

/** Written here, never passed on as they came. */
const rewritten = new Set(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via", "expect"]);

/** Beside X-Forwarded-*. Some frameworks take the address, the host or even the path of a request from them. */
const spokenByProxies = new Set([
  "forwarded",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-remote-ip",
  "x-remote-addr",
  "client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "fastly-client-ip",
  "x-envoy-external-address",
  "x-envoy-original-path",
  "x-original-url",
  "x-original-uri",
  "x-original-host",
  "x-original-method",
  "x-original-forwarded-for",
  "x-rewrite-url",
  "x-host",
]);

/** Fields that the proxy writes in place of the client's, such as those of a body that it has changed. */
export interface Replaced {
  /** In lower case. */
  readonly names: ReadonlySet<string>;
  readonly fields: readonly string[];
}

/** `written`: fields of every request, in place of the client's: the vendor's key, say, which no client has. */
export function clientFields(
  { trusts, headerNames, trustedHeaderNames }: RequestAttributes,
  written: Readonly<Record<string, string>> = {},
): (client: IncomingMessage, replaced?: Replaced) => string[] {
  const ownNames = new Set(Object.keys(written).map((name) => name.toLowerCase()));
  const ownFields = Object.entries(written).flat();
  return (client, replaced) => {
    const trusted = trusts(client.socket.remoteAddress ?? "");
    const drop = (name: string): boolean => {
      if (rewritten.has(name) || ownNames.has(name) || replaced?.names.has(name)) return true;
      if (!trusted && (isSpokenByProxies(name) || trustedHeaderNames.has(name))) return true;
      return name.includes("_") && !headerNames.has(name) && isAlias(name.replaceAll("_", "-"));
    };
    const fields = endToEnd(client.rawHeaders, { drop, keep: headerNames });
    const framing = replaced?.fields ?? framingFields(client);
    return [...fields, ...forwardedFields(client, trusted), ...framing, ...ownFields];
  };

  /** CGI and its heirs (WSGI, PHP, Rack) read `X_User` and `X-User` as one name. */
  function isAlias(name: string): boolean {
    return (
      rewritten.has(name) || ownNames.has(name) || isSpokenByProxies(name) || headerNames.has(name) || framing.has(name)
    );
  }
}

const framing = new Set(["host", "content-length", "transfer-encoding", "connection", "upgrade"]);

function isSpokenByProxies(name: string): boolean {
  return name.startsWith("x-forwarded") || spokenByProxies.has(name);
}

function forwardedFields(client: IncomingMessage, trusted: boolean): string[] {
  const peer = client.socket.remoteAddress ?? "unknown";
  const came = client.headers["x-forwarded-for"];
  const before = came !== undefined && trusted ? `${came}, ` : "";
  const proto = "encrypted" in client.socket ? "https" : "http";
  const via = client.headers.via === undefined ? "" : `${client.headers.via}, `;
  const fields = ["X-Forwarded-For", before + peer, "X-Forwarded-Proto", proto, "Via", `${via}1.1 sluice`];
  if (client.headers.host !== undefined) fields.push("X-Forwarded-Host", client.headers.host);
  return fields;
}

/** Node frames the body by this or by its length; without either there is none. */
export function framingFields({ headers }: IncomingMessage): string[] {
  return headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"];
}
