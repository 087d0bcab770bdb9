/**
 * Request smuggling protection: refuses a request that the proxy and an upstream could read differently, and normalises its target, so that
 * the request forwarded is the one that was checked.
 * Node's parser has already refused the worst: two lengths, Content-Length with Transfer-Encoding, bare line ends.
 */
import type { IncomingMessage } from "node:http";
import { type Problem, problem, problemOf } from "../../http/problem.js";

/** Rewrites the request's `url` to its normal form, or returns why it is refused (RFC 9112, sections 3.2 and 6.1). */
export function normaliseRequest(
  client: IncomingMessage,
  normalTarget: (target: string) => string,
): Problem | undefined {
  const ambiguity = codingProblem(client) ?? hostProblem(client) ?? targetProblem(client);
  if (ambiguity !== undefined) return ambiguity;
  try {
    client.url = normalTarget(client.url ?? "/");
    return undefined;
  } catch (error) {
    const refused = problemOf(error);
    if (refused === undefined) throw error;
    return refused;
  }
}

function codingProblem({ headers }: IncomingMessage): Problem | undefined {
  const coding = headers["transfer-encoding"];
  if (coding === undefined || coding.toLowerCase() === "chunked") return undefined;
  return problem("unsupported-coding", "transfer-encoding: expected chunked");
}

function hostProblem({ rawHeaders, httpVersion }: IncomingMessage): Problem | undefined {
  const hosts = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === "host").length;
  if (hosts === 1 || (hosts === 0 && httpVersion === "1.0")) return undefined;
  return problem("invalid-request", `host: expected one, got ${hosts}`);
}

function targetProblem(client: IncomingMessage): Problem | undefined {
  const { url = "/", method } = client;
  if (url.startsWith("/") || (url === "*" && method === "OPTIONS")) return undefined;
  const authority = /^https?:\/\/([^/?#\\@]+)(?:[/?#]|$)/i.exec(url)?.[1];
  if (authority === undefined) {
    return problem("invalid-request", "target: expected a path, or a URL with a host");
  }
  replaceHost(client, authority);
  return undefined;
}

/** The host of an absolute-form target overrides the Host header, which is replaced (RFC 9112, section 3.2.2). */
function replaceHost({ headers, rawHeaders }: IncomingMessage, host: string): void {
  headers.host = host;
  const at = rawHeaders.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "host");
  if (at === -1) rawHeaders.push("Host", host);
  else rawHeaders[at + 1] = host;
}
