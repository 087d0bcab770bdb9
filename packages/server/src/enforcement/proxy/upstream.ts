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
import type { RequestAttributes } from "../attributes/request-attributes.js";
import { clientFields, type Replaced } from "./client-fields.js";

export interface Upstream {
  readonly url: string;
  /** With its port, as a Host field spells it. */
  readonly host: string;
  /** Starts the request that corresponds to a client's. `extra`: more fields, such as those of an upgrade. */
  start(
    client: IncomingMessage,
    options?: { extra?: readonly string[]; replaced?: Replaced | undefined },
  ): ClientRequest;
  close(): void;
}

/** An upstream that says nothing for this long is taken for dead. */
const SILENCE_MS = 120_000;
const MOST_FREE_SOCKETS = 256;

interface UpstreamOptions {
  /** Its URL. */
  readonly upstream: string;
  readonly attributes: RequestAttributes;
  /** Sent with every request, in place of what the client sends under these names. */
  readonly upstreamHeaders: Readonly<Record<string, string>>;
}

export function createUpstream({ upstream: url, attributes, upstreamHeaders }: UpstreamOptions): Upstream {
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
        // URL writes IPv6 hosts in brackets, which sockets do not take.
        hostname: hostname.replace(/^\[|\]$/g, ""),
        port: port === "" ? (tls ? 443 : 80) : Number(port),
        method: client.method,
        // In the normal form that was judged.
        path: client.url === "*" ? "*" : base + client.url,
        headers: [...fieldsOf(client, replaced), ...extra],
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
