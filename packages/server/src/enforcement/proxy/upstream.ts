/** The server behind the proxy: its address, how requests are sent to it, and its connection pool. */
import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { clientFields, type Replaced } from "./client-fields.js";

export interface Upstream {
  readonly url: string;
  /** Includes the port, as in a Host header. */
  readonly host: string;
  /** Starts the upstream request for a client's request. `extra`: additional fields, such as those of an upgrade. */
  start(
    client: IncomingMessage,
    options?: { extra?: readonly string[]; replaced?: Replaced | undefined },
  ): ClientRequest;
  close(): void;
}

const MOST_FREE_SOCKETS = 256;

interface UpstreamOptions {
  /** Its URL. */
  readonly upstream: string;
  readonly attributes: RequestAttributes;
  /** Sent with every request, replacing the client's fields of the same names. */
  readonly upstreamHeaders: Readonly<Record<string, string>>;
  /** An upstream that is silent for this long is considered dead. */
  readonly upstreamTimeoutMs: number;
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const { upstream: url, attributes, upstreamHeaders, upstreamTimeoutMs } = options;
  const fieldsOf = clientFields(attributes, upstreamHeaders);
  const { protocol, host, hostname, port, pathname } = new URL(url);
  const tls = protocol === "https:";
  const pool = { keepAlive: true, maxFreeSockets: MOST_FREE_SOCKETS, scheduling: "lifo" } as const;
  const agent = tls ? new TlsAgent(pool) : new Agent(pool);
  const start = tls ? httpsRequest : httpRequest;
  const base = pathname.replace(/\/$/, "");
  return {
    url,
    host,
    start(client, { extra = [], replaced } = {}) {
      const request = start({
        // URL puts IPv6 hosts in brackets, which sockets do not accept.
        hostname: hostname.replace(/^\[|\]$/g, ""),
        port: port === "" ? (tls ? 443 : 80) : Number(port),
        method: client.method,
        // The normalised target, on which the decision was based.
        path: client.url === "*" ? "*" : base + client.url,
        headers: [...fieldsOf(client, replaced), ...extra],
        agent,
        setDefaultHeaders: false,
        timeout: upstreamTimeoutMs,
      } as unknown as RequestOptions);
      request.on("timeout", () => request.destroy(new Error("the upstream fell silent")));
      return request;
    },
    close: () => agent.destroy(),
  };
}
