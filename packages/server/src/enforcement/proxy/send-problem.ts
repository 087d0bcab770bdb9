/**
 * The proxy's own answer, where no upstream gave one: a problem, after which the connection ends, for what is left of the
 * request's body is nobody's.
 */
import type { ServerResponse } from "node:http";
import { lingerAfter } from "../http/lingering-close.js";
import { type Problem, problemBody } from "../http/problem.js";

/** A response that has begun cannot be taken back: it is cut, so that the client does not take it for whole. */
export function sendProblem(response: ServerResponse, problem: Problem): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const text = JSON.stringify(problemBody(problem));
  lingerAfter(response);
  response.writeHead(problem.status, {
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  });
  response.end(text);
}
