/**
 * Answers connections that never became a request: bytes that are no HTTP, an unknown method, headers too large or too slow, no host.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { linger } from "./lingering-close.js";
import { type Problem, problem } from "./problem.js";
import { problemResponseText } from "./write-problem.js";

/** Our messages for errors of Node's parser and its timeouts. */
const clientProblems: Readonly<Record<string, Problem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: problem("too-slow", "the request did not arrive whole in time"),
  HPE_HEADER_OVERFLOW: problem("headers-too-large", "headers: expected at most 16 KiB"),
  HPE_INVALID_METHOD: problem("invalid-request", "method: expected one that HTTP knows"),
};

const unreadable = problem("invalid-request", "expected HTTP/1.1, got something else");

/** HTTP/1.1 asks for a Host (RFC 9112, section 3.2). */
export function problemOfHost({ headers, httpVersion }: IncomingMessage): Problem | undefined {
  if (headers.host !== undefined || httpVersion === "1.0") return undefined;
  return problem("invalid-request", "host: expected one, got none");
}

/** A listener for a server's "clientError". */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  // The parser reports again what comes while we linger. A response that has begun cannot be taken back: then the connection is cut.
  if (socket.writableEnded) return;
  const { _httpMessage: underWay } = socket as Socket & { _httpMessage?: ServerResponse | null };
  if (!socket.writable || error.code === "ECONNRESET" || underWay?.headersSent === true) {
    socket.destroy();
    return;
  }
  socket.write(problemResponseText(clientProblems[error.code ?? ""] ?? unreadable));
  linger(socket);
}
