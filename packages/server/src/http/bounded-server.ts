/**
 * An HTTP server that no slow or noisy peer holds: bounded headers, bounded times, known connections.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { trackConnections } from "./drain.js";
import { serverOptions, type TlsFiles } from "./tls-files.js";

/** Checks are small: whoever needs longer than this to send one is not asking for one. */
const bounds = {
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 72_000,
  maxHeaderSize: 16 * 1024,
  // Node looks for late peers this often.
  connectionsCheckingInterval: 1_000,
} as const;

export function boundedServer(tls: TlsFiles | undefined, listener: RequestListener): Server {
  const serve: RequestListener = (request, response) => {
    // What was sent behind a request that ended its connection is not looked at: nobody could be told the answer.
    if (request.socket.writable) listener(request, response);
  };
  return trackConnections(tls === undefined ? createServer(bounds, serve) : tlsServer(tls, serve));
}

function tlsServer(tls: TlsFiles, serve: RequestListener): Server {
  const server = createTlsServer({ ...bounds, ...serverOptions(tls.current) }, serve);
  tls.onChange((renewed) => server.setSecureContext(renewed));
  return server;
}
