/**
 * Header fields of the upstream request: the client's own, and what this proxy adds about the client.
 * Fields that name another client, host, path or method than the decision used are forwarded from trusted peers only.
 */
import type { IncomingMessage } from "node:http";
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { endToEnd } from "./message-headers.js";

/** Set by this proxy, never forwarded as received. */
const rewritten = new Set(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via", "expect"]);

/** Besides X-Forwarded-*. Some frameworks take the client's address, the host or even the path from them. */
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

/** Frameworks that honour them turn a POST into a DELETE, and the decision was about the POST. */
const methodOverrides = new Set(["x-http-method-override", "x-http-method", "x-method-override"]);

/** Fields that replace the client's, such as those that describe a body that the proxy changed. */
export interface Replaced {
  /** In lower case. */
  readonly names: ReadonlySet<string>;
  readonly fields: readonly string[];
}

/** `written`: fixed fields that replace the client's on every request, such as the vendor's API key, which no client has. */
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
      // An override mapped to an attribute was part of the decision, so it may be forwarded.
      if (!trusted && methodOverrides.has(name) && !headerNames.has(name)) return true;
      return name.includes("_") && !headerNames.has(name) && isAlias(name.replaceAll("_", "-"));
    };
    const fields = endToEnd(client.rawHeaders, { drop, keep: headerNames });
    const framing = replaced?.fields ?? framingFields(client);
    return [...fields, ...forwardedFields(client, trusted), ...framing, ...ownFields];
  };

  /** CGI and its descendants (WSGI, PHP, Rack) treat `X_User` and `X-User` as the same name. */
  function isAlias(name: string): boolean {
    return (
      rewritten.has(name) ||
      ownNames.has(name) ||
      isSpokenByProxies(name) ||
      methodOverrides.has(name) ||
      headerNames.has(name) ||
      framing.has(name)
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

/** Transfer-Encoding or Content-Length frames the body; without either there is none. */
export function framingFields({ headers }: IncomingMessage): string[] {
  return headers["transfer-encoding"] === undefined ? [] : ["Transfer-Encoding", "chunked"];
}
