/** A separate listener for metrics (`--metrics-address`): its clients can scrape metrics and do nothing else. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { answerClientError, problemOfHost } from "./client-error.js";
import { trackConnections } from "./drain.js";
import { internalProblem, type Problem, problem } from "./problem.js";
import { writeProblem } from "./write-problem.js";

const LONGEST_REQUEST_MS = 5_000;
const MOST_CONNECTIONS = 64;
const ALLOWED = "GET, HEAD";

export function createMetricsListener(options: {
  readonly text: () => Promise<string>;
  readonly isOwnHost: (header: string | undefined) => boolean;
}): Server {
  const bounds = { requestTimeout: LONGEST_REQUEST_MS, requireHostHeader: false };
  const server = createServer(bounds, (request, response) => {
    const refused = problemOfHost(request) ?? problemWith(request, options.isOwnHost);
    if (refused !== undefined) {
      if (refused.code === "method-not-allowed") response.setHeader("allow", ALLOWED);
      writeProblem(response, refused);
      return;
    }
    options.text().then(
      (text) => response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text),
      () => writeProblem(response, internalProblem),
    );
  });
  server.on("clientError", answerClientError);
  server.maxConnections = MOST_CONNECTIONS;
  return trackConnections(server);
}

function problemWith(
  { headers: { host }, method, url = "" }: IncomingMessage,
  isOwnHost: (header: string | undefined) => boolean,
): Problem | undefined {
  if (!isOwnHost(host)) return problem("foreign-host", "host: expected this service's address");
  if (method !== "GET" && method !== "HEAD") return problem("method-not-allowed", `expected ${ALLOWED}, got ${method}`);
  return url.split("?")[0] === "/metrics" ? undefined : problem("not-found", "nothing but /metrics answers here");
}
