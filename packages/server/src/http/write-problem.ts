/** Writes a problem: as Fastify's reply, as a Node response, or as raw response bytes on a bare connection. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { FastifyReply } from "fastify";
import { lingerAfter } from "./lingering-close.js";
import { PROBLEM_TYPE, type Problem, problemBody } from "./problem.js";

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.code === "unauthorized") reply.header("www-authenticate", 'Bearer realm="sluice"');
  // Uses JSON.stringify: Fastify's serialiser would strip fields that are not in the route's schema.
  return reply.code(problem.status).type(PROBLEM_TYPE).serializer(JSON.stringify).send(problemBody(problem));
}

/** A format for problem bodies. */
interface ProblemSpelling {
  readonly type: string;
  readonly bodyOf: (problem: Problem) => object;
}

const standard: ProblemSpelling = { type: PROBLEM_TYPE, bodyOf: problemBody };

/** For a request that was read to its end: the connection stays open. */
export function writeProblem(response: ServerResponse, problem: Problem, { type, bodyOf } = standard): void {
  const bytes = Buffer.from(JSON.stringify(bodyOf(problem)));
  response.writeHead(problem.status, { "content-type": type, "content-length": bytes.length });
  response.end(bytes);
}

/**
 * For a request that is not read to its end: closes the connection. If a response has already started, the connection is cut, so that the
 * client cannot take half a response for a complete one.
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

/** A complete response for a connection without a response object; closes the connection. */
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
