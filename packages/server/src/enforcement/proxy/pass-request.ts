/**
 * Passes one request on to the upstream and its response back, streaming both ways.
 *
 * The ways in which it ends, each of which frees the lease and both sides:
 *   the response was sent whole · the client went away (the upstream's request is cut) · the upstream could not be reached (502) or
 *   fell silent (504) before it answered · the upstream broke off in the middle (the client's connection is cut, so that it
 *   cannot take half a response for a whole one)
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { type Problem, problem } from "../../http/problem.js";
import { framingFields, type Replaced } from "./client-fields.js";
import { endToEnd, hasNoBody, reasonOf } from "./message-headers.js";
import type { Upstream } from "./upstream.js";
import type { CallBody, LlmCall } from "./usage/llm-gateway.js";

interface Passing {
  readonly client: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: Upstream;
  /** Added to the upstream's own. */
  readonly rateLimitFields: Readonly<Record<string, string>>;
  readonly turnsAway: () => boolean;
  /** With `--usage`. */
  readonly call: LlmCall | undefined;
  /** Ends a response that has not begun. */
  readonly refuse: (response: ServerResponse, problem: Problem) => void;
}

/** RFC 9110, section 9.2.2: a proxy does not repeat other requests by itself. An upstream may have done what it did not answer. */
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

function isRepeatable(client: IncomingMessage): boolean {
  return hasNoBody(client) && repeatable.has(client.method ?? "");
}

export function passRequest(passing: Passing, mayRetry = isRepeatable(passing.client)): void {
  const { client, response, upstream, call } = passing;
  const request = upstream.start(client, { replaced: call && replacedBy(call, client, upstream) });
  const cut = (): void => void request.destroy();
  response.once("close", cut);
  let isOver = false;
  const fail = (refused: Problem): void => {
    if (isOver || response.destroyed || response.writableEnded) return;
    isOver = true;
    response.off("close", cut);
    request.destroy();
    passing.refuse(response, refused);
  };
  request.on("response", (answer) => {
    try {
      passResponse(passing, answer);
    } catch {
      // Node reads answers that it does not write, such as one with the status 0. Thrown on, that would end the process.
      fail(unusable);
    }
  });
  // Nobody asked for another protocol. Without a listener Node drops the connection, and the client would wait for its own timeout.
  request.on("upgrade", (_answer, socket) => {
    socket.destroy();
    fail(unusable);
  });
  request.on("error", (error: NodeJS.ErrnoException) => {
    // An upstream may close an idle connection at the very moment at which we reuse it; then it has seen nothing of the request.
    const isUnseen = request.reusedSocket && error.code === "ECONNRESET" && !response.headersSent;
    if (mayRetry && isUnseen && !isOver && !response.destroyed) {
      isOver = true;
      response.off("close", cut);
      passRequest(passing, false);
    } else fail(problemOf(error));
  });
  // An upstream that closes after an interim answer (1xx) is no error to Node. A response that has begun ends with the answer.
  request.once("close", () => {
    if (!response.headersSent) fail(unusable);
  });
  if (hasNoBody(client)) request.end();
  else if (call?.body === undefined) sendBody(client, request);
  else sendHeldBody(call.body, request);
}

/** Answers are read on their way, so they are asked for without compression. Vendors know themselves by their own name only. */
function replacedBy({ body }: LlmCall, client: IncomingMessage, { host }: Upstream): Replaced {
  const length = body === undefined ? framingFields(client) : ["Content-Length", String(body.bytes)];
  return {
    names: new Set(["host", "accept-encoding", ...(body === undefined ? [] : ["content-length"])]),
    fields: ["Host", host, "Accept-Encoding", "identity", ...length],
  };
}

function passResponse({ response, rateLimitFields, turnsAway, call }: Passing, answer: IncomingMessage): void {
  // Without an upgrade Node takes 101 for a final answer, which the client would not.
  if (answer.statusCode! < 200) throw new RangeError(`status: expected 200 or above, got ${answer.statusCode}`);
  const { through, drop } = call?.answered(answer) ?? { through: [], drop: undefined };
  const fields = endToEnd(answer.rawHeaders, drop && { drop });
  for (const [name, value] of Object.entries(rateLimitFields)) fields.push(name, value);
  if (turnsAway()) fields.push("Connection", "close");
  response.writeHead(answer.statusCode!, reasonOf(answer), fields);
  // Headers at once: a stream of events may have its first event in an hour.
  response.flushHeaders();
  pipeline([answer, ...through, response], (error) => {
    if (error != null) response.destroy();
  });
}

function sendBody(client: IncomingMessage, request: ClientRequest): void {
  client.pipe(request);
  client.once("close", () => {
    if (!client.complete) request.destroy();
  });
}

function sendHeldBody(body: CallBody, request: ClientRequest): void {
  for (const block of body.blocks()) request.write(block);
  // They count as held until the connection has taken them.
  request.once("finish", body.letGo).once("close", body.letGo);
  request.end();
}

const unusable = problem("upstream-unreachable", "the upstream's answer is no HTTP that can be passed on");

function problemOf(error: Error): Problem {
  return error.message === "the upstream fell silent"
    ? problem("upstream-silent", "the upstream did not answer in time")
    : problem("upstream-unreachable", "the upstream could not be reached");
}
