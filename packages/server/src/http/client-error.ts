/**
 * Answers connections that never produced a request: bytes that are not HTTP, an unknown method, headers too large or too slow, no Host.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { linger } from "./lingering-close.js";
import { type Problem, problem } from "./problem.js";
import { problemResponseText } from "./write-problem.js";

/** Our problems for errors and timeouts of Node's parser. */
const clientProblems: Readonly<Record<string, Problem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: problem("too-slow", "the request did not arrive whole in time"),
  HPE_HEADER_OVERFLOW: problem("headers-too-large", "headers: expected at most 16 KiB"),
  HPE_INVALID_METHOD: problem("invalid-request", "method: expected one that HTTP knows"),
};

const unreadable = problem("invalid-request", "expected HTTP/1.1, got something else");

/** HTTP/1.1 requires a Host header (RFC 9112, section 3.2). */
export function problemOfHost({ headers, httpVersion }: IncomingMessage): Problem | undefined {
  if (headers.host !== undefined || httpVersion === "1.0") return undefined;
  return problem("invalid-request", "host: expected one, got none");
}

/** Handler for a server's "clientError" event. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  // While we linger, the parser reports everything else that arrives. If a response has already started, the connection is cut instead.
  if (socket.writableEnded) return;
  const { _httpMessage: underWay } = socket as Socket & { _httpMessage?: ServerResponse | null };
  if (!socket.writable || error.code === "ECONNRESET" || underWay?.headersSent === true) {
    socket.destroy();
    return;
  }
  socket.write(problemResponseText(clientProblems[error.code ?? ""] ?? unreadable));
  linger(socket);
}
