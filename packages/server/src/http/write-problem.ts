/** Writes a problem: as Fastify's reply, as Node's response, or as the bytes of a response on a bare connection. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { FastifyReply } from "fastify";
import { lingerAfter } from "./lingering-close.js";
import { PROBLEM_TYPE, type Problem, problemBody } from "./problem.js";

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.code === "unauthorized") reply.header("www-authenticate", 'Bearer realm="sluice"');
  // Written by JSON.stringify: Fastify's own serialiser would cut the problem to the route's schemas.
  return reply.code(problem.status).type(PROBLEM_TYPE).serializer(JSON.stringify).send(problemBody(problem));
}

/** How a problem is spelled. */
interface ProblemSpelling {
  readonly type: string;
  readonly bodyOf: (problem: Problem) => object;
}

const standard: ProblemSpelling = { type: PROBLEM_TYPE, bodyOf: problemBody };

/** On a connection that goes on: the request was read whole. */
export function writeProblem(response: ServerResponse, problem: Problem, { type, bodyOf } = standard): void {
  const bytes = Buffer.from(JSON.stringify(bodyOf(problem)));
  response.writeHead(problem.status, { "content-type": type, "content-length": bytes.length });
  response.end(bytes);
}

/**
 * On a connection that ends with it, because the rest of the request is not read. A response that has begun cannot be taken back: the
 * connection is cut, so that the client does not take half a response for a whole one.
 */
export function writeLastProblem(response: ServerResponse, problem: Problem, spelling = standard): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  lingerAfter(response);
  response.setHeader("connection", "close");
  writeProblem(response, problem, spelling);
}

/** The whole response, for a connection that has no response object; it ends with it. */
export function problemResponseText(problem: Problem): string {
  const text = JSON.stringify(problemBody(problem));
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(text)}`,
    "Connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${text}`;
}
