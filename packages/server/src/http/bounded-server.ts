/**
 * An HTTP server that no slow or noisy peer holds: bounded headers, bounded times, known connections.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { trackConnections } from "./drain.js";
import { serverOptions, type TlsFiles } from "./tls-files.js";

/** Checks are small: a client that needs longer than this to send one is stuck or hostile. */
const bounds = {
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 72_000,
  maxHeaderSize: 16 * 1024,
  // Node looks for late peers this often.
  connectionsCheckingInterval: 1_000,
  // Node's own refusal has no problem body, and would still hand us the next request of the connection.
  requireHostHeader: false,
} as const;

export function boundedServer(tls: TlsFiles | undefined, listener: RequestListener): Server {
  const serve: RequestListener = (request, response) => {
    // Bytes behind a request that closes its connection are ignored: the answer could not be sent.
    if (request.socket.writable) listener(request, response);
  };
  const server = tls === undefined ? createServer(bounds, serve) : tlsServer(tls, serve);
  // An expectation that nobody knows is passed over (RFC 9110, section 10.1.1). Node's own refusal has no problem body.
  server.on("checkExpectation", serve);
  return trackConnections(server);
}

function tlsServer(tls: TlsFiles, serve: RequestListener): Server {
  const server = createTlsServer({ ...bounds, ...serverOptions(tls.current) }, serve);
  tls.onChange((renewed) => server.setSecureContext(renewed));
  return server;
}
