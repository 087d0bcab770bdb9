/**
 * An HTTP server that no slow or noisy peer holds: bounded headers, bounded times, known connections.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { trackConnections } from "../../drain.js";

export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Checks are small: whoever needs longer than this to send one is not asking for one. */
const bounds = {
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 72_000,
  maxHeaderSize: 16 * 1024,
  // Node looks for late peers this often.
  connectionsCheckingInterval: 1_000,
} as const;

export function boundedServer(tls: Tls | undefined, listener: RequestListener): Server {
  const server = tls === undefined ? createServer(bounds, listener) : createTlsServer({ ...bounds, ...tls }, listener);
  return trackConnections(server);
}
