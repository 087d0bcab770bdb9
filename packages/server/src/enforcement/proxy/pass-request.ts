/**
 * Forwards one request to the upstream and streams the response back.
 *
 * It can end in these ways, each of which releases the lease and both connections:
 *   the response was sent completely
 *   the client disconnected: the upstream request is aborted, with `--usage` after its usage has been read
 *   the upstream could not be reached (502), or timed out before it answered (504)
 *   the upstream broke off mid-response: the client's connection is cut, so that it cannot take half a response for a complete one
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
  /** Answers with a problem, before a response has started. */
  readonly refuse: (response: ServerResponse, problem: Problem) => void;
}

/** Only idempotent methods may be retried (RFC 9110, section 9.2.2): the upstream may have processed a request that it did not answer. */
const repeatable = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

function isRepeatable(client: IncomingMessage): boolean {
  return hasNoBody(client) && repeatable.has(client.method ?? "");
}

export function passRequest(passing: Passing, mayRetry = isRepeatable(passing.client)): void {
  const { client, response, upstream, call } = passing;
  const request = upstream.start(client, { replaced: call && replacedBy(call, client, upstream) });
  const cut = (): void => {
    // Its usage has yet to be read; the call aborts the request afterwards.
    if (call?.isReadOn !== true) request.destroy();
  };
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
      // Node accepts responses that it refuses to write, such as one with the status 0. Uncaught, the error would crash the process.
      fail(unusable);
    }
  });
  // No upgrade was requested. Without a listener Node drops the connection, and the client would wait for its own timeout.
  request.on("upgrade", (_answer, socket) => {
    socket.destroy();
    fail(unusable);
  });
  request.on("error", (error: NodeJS.ErrnoException) => {
    // Keep-alive race: an upstream may close an idle connection just as it is reused, without having seen the request.
    const isUnseen = request.reusedSocket && error.code === "ECONNRESET" && !response.headersSent;
    if (mayRetry && isUnseen && !isOver && !response.destroyed) {
      isOver = true;
      response.off("close", cut);
      passRequest(passing, false);
    } else fail(problemOf(error));
  });
  // Node reports no error if an upstream closes after an interim response (1xx). A response in progress ends with its own stream.
  request.once("close", () => {
    if (!response.headersSent) fail(unusable);
  });
  if (hasNoBody(client)) request.end();
  else if (call?.body === undefined) sendBody(client, request);
  else sendHeldBody(call.body, request);
}

/** Responses are parsed on the way, so request them uncompressed. Set the vendor's own Host, the only one that it answers to. */
function replacedBy({ body }: LlmCall, client: IncomingMessage, { host }: Upstream): Replaced {
  const length = body === undefined ? framingFields(client) : ["Content-Length", String(body.bytes)];
  return {
    names: new Set(["host", "accept-encoding", ...(body === undefined ? [] : ["content-length"])]),
    fields: ["Host", host, "Accept-Encoding", "identity", ...length],
  };
}

function passResponse({ response, rateLimitFields, turnsAway, call }: Passing, answer: IncomingMessage): void {
  // Without an upgrade Node takes 101 for a final response, which the client would not.
  if (answer.statusCode! < 200) throw new RangeError(`status: expected 200 or above, got ${answer.statusCode}`);
  const { through, drop } = call?.answered(answer) ?? { through: [], drop: undefined };
  const fields = endToEnd(answer.rawHeaders, drop && { drop });
  for (const [name, value] of Object.entries(rateLimitFields)) fields.push(name, value);
  if (turnsAway()) fields.push("Connection", "close");
  response.writeHead(answer.statusCode!, reasonOf(answer), fields);
  // Flush the headers: an event stream may have its first event in an hour.
  response.flushHeaders();
  const cut = (error?: Error | null): void => {
    if (error != null) response.destroy();
  };
  const last = through.at(-1);
  if (last === undefined) {
    pipeline([answer, response], cut);
    return;
  }
  // Kept out of the pipeline, which would end with the client's connection, while the answer may still be read for its usage.
  pipeline([answer, ...through], cut);
  // Swallows errors of writing to a closing connection; "close" reports its end.
  last.pipe(response.on("error", () => undefined));
}

function sendBody(client: IncomingMessage, request: ClientRequest): void {
  client.pipe(request);
  client.once("close", () => {
    if (!client.complete) request.destroy();
  });
}

function sendHeldBody(body: CallBody, request: ClientRequest): void {
  for (const block of body.blocks()) request.write(block);
  // Release the body's memory only once the connection has taken it.
  request.once("finish", body.letGo).once("close", body.letGo);
  request.end();
}

const unusable = problem("upstream-unreachable", "the upstream's answer is no HTTP that can be passed on");

function problemOf(error: Error): Problem {
  return error.message === "the upstream fell silent"
    ? problem("upstream-silent", "the upstream did not answer in time")
    : problem("upstream-unreachable", "the upstream could not be reached");
}
