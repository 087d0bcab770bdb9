/**
 * Answers what never became a request: bytes that are no HTTP, a method that HTTP does not know, headers too large or too slow.
 */
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { linger } from "./lingering-close.js";
import { type Problem, problemBody } from "./problem.js";

/** What Node's parser and its watch over slow peers refuse, in our words. */
const clientProblems: Readonly<Record<string, Problem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, code: "too-slow", detail: "the request did not arrive whole in time" },
  HPE_HEADER_OVERFLOW: { status: 431, code: "headers-too-large", detail: "headers: expected at most 16 KiB" },
  HPE_INVALID_METHOD: { status: 400, code: "invalid-request", detail: "method: expected one that HTTP knows" },
};

const unreadable: Problem = { status: 400, code: "invalid-request", detail: "expected HTTP/1.1, got something else" };

/** A listener for a server's "clientError". */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  // The parser reports again what comes while we linger. A response that has begun cannot be taken back: then the connection is cut.
  if (socket.writableEnded) return;
  const { _httpMessage: underWay } = socket as Socket & { _httpMessage?: ServerResponse | null };
  if (!socket.writable || error.code === "ECONNRESET" || underWay?.headersSent === true) {
    socket.destroy();
    return;
  }
  const problem = clientProblems[error.code ?? ""] ?? unreadable;
  const text = JSON.stringify(problemBody(problem));
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
  linger(socket);
}
