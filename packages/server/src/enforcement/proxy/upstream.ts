/**
 * The server behind the proxy: where it is, how requests to it are spelled, how its connections are kept.
 */
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import { endToEnd } from "./message-headers.js";

export interface Upstream {
  readonly url: string;
  /** Starts the request that corresponds to a client's. `extra`: more fields, such as those of an upgrade. */
  start(client: IncomingMessage, extra?: readonly string[]): ClientRequest;
  close(): void;
}

/** An upstream that says nothing for this long is taken for dead. */
const SILENCE_MS = 120_000;
const MOST_FREE_SOCKETS = 256;

/** Rewritten below, never passed on as they came. */
const rewritten = new Set(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via", "expect"]);

export function createUpstream({ url, trusts }: { url: string; trusts: (peer: string) => boolean }): Upstream {
  const { protocol, hostname, port, pathname } = new URL(url);
  const tls = protocol === "https:";
  const pool = { keepAlive: true, maxFreeSockets: MOST_FREE_SOCKETS, scheduling: "lifo" } as const;
  const agent = tls ? new TlsAgent(pool) : new Agent(pool);
  const start = tls ? httpsRequest : httpRequest;
  const base = pathname.replace(/\/$/, "");
  return {
    url,
    start(client, extra = []) {
      const request = start({
        // URL writes IPv6 hosts in brackets, which sockets do not take.
        hostname: hostname.replace(/^\[|\]$/g, ""),
        port: port === "" ? (tls ? 443 : 80) : Number(port),
        method: client.method,
        path: base + originForm(client.url ?? "/"),
        headers: [...endToEnd(client.rawHeaders, rewritten), ...forwardedFields(client, trusts), ...extra],
        agent,
        setDefaultHeaders: false,
        timeout: SILENCE_MS,
      } as unknown as RequestOptions);
      request.on("timeout", () => request.destroy(new Error("the upstream fell silent")));
      return request;
    },
    close: () => agent.destroy(),
  };
}

/** `GET http://host/path` (RFC 9112, section 3.2.2) asks for the same as `GET /path`; an upstream might route by the former. */
function originForm(target: string): string {
  if (target.startsWith("/") || target === "*") return target;
  const path = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/i.exec(target)?.[1] ?? "";
  return path.startsWith("/") ? path : `/${path}`;
}

function forwardedFields(client: IncomingMessage, trusts: (peer: string) => boolean): string[] {
  const peer = client.socket.remoteAddress ?? "unknown";
  const came = client.headers["x-forwarded-for"];
  const before = came !== undefined && trusts(peer) ? `${came}, ` : "";
  const proto = "encrypted" in client.socket ? "https" : "http";
  const via = client.headers.via === undefined ? "" : `${client.headers.via}, `;
  const fields = ["X-Forwarded-For", before + peer, "X-Forwarded-Proto", proto, "Via", `${via}1.1 sluice`];
  if (client.headers.host !== undefined) fields.push("X-Forwarded-Host", client.headers.host);
  // Node frames the body by these; without either there is none.
  if (client.headers["transfer-encoding"] !== undefined) fields.push("Transfer-Encoding", "chunked");
  return fields;
}
