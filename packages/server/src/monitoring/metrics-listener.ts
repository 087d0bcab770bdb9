/** A listener for a scraper alone (`--metrics-address`): whoever reaches it can read metrics and do nothing else. */
import { createServer, type Server } from "node:http";
import { trackConnections } from "../drain.js";

const LONGEST_REQUEST_MS = 5_000;
const MOST_CONNECTIONS = 64;

export function createMetricsListener(options: {
  readonly text: () => Promise<string>;
  readonly isOwnHost: (header: string | undefined) => boolean;
}): Server {
  const server = createServer({ requestTimeout: LONGEST_REQUEST_MS }, (request, response) => {
    if (!options.isOwnHost(request.headers.host)) return void response.writeHead(421).end();
    if (request.method !== "GET" && request.method !== "HEAD")
      return void response.writeHead(405, { allow: "GET, HEAD" }).end();
    if (request.url?.split("?")[0] !== "/metrics") return void response.writeHead(404).end();
    options.text().then(
      (text) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  server.maxConnections = MOST_CONNECTIONS;
  return trackConnections(server);
}
