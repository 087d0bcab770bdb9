/** An HTTP server hardened against slow and abusive clients (Slowloris): bounded headers, timeouts, tracked connections. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { trackConnections } from "./drain.js";
import { serverOptions, type TlsFiles } from "./tls-files.js";

/** Checks are small: a client that takes longer to send one is stuck or hostile. */
const bounds = {
  requestTimeout: 10_000,
  headersTimeout: 10_000,
  keepAliveTimeout: 72_000,
  maxHeaderSize: 16 * 1024,
  // How often Node checks for timed-out requests.
  connectionsCheckingInterval: 1_000,
  // Node's own refusal has no problem body, and would still pass us the connection's next request.
  requireHostHeader: false,
} as const;

export function boundedServer(tls: TlsFiles | undefined, listener: RequestListener): Server {
  const serve: RequestListener = (request, response) => {
    // Ignore pipelined requests after one that closes the connection: they could not be answered.
    if (request.socket.writable) listener(request, response);
  };
  const server = tls === undefined ? createServer(bounds, serve) : tlsServer(tls, serve);
  // Node drops fields beyond the thousandth from `headers` without a word: a client could hide a field that is judged, or its body's length,
  // behind a thousand others, and `rawHeaders` would still pass it on. `maxHeaderSize` bounds them.
  server.maxHeadersCount = 0;
  // Ignore unknown expectations (RFC 9110, section 10.1.1). Node's own refusal has no problem body.
  server.on("checkExpectation", serve);
  return trackConnections(server);
}

function tlsServer(tls: TlsFiles, serve: RequestListener): Server {
  const server = createTlsServer({ ...bounds, ...serverOptions(tls.current) }, serve);
  tls.onChange((renewed) => server.setSecureContext(renewed));
  return server;
}
