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
import { endToEnd, hasNoBody } from "./message-headers.js";
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

export function passRequest(passing: Passing, mayRetry = hasNoBody(passing.client)): void {
  const { client, response, upstream, call } = passing;
  const request = upstream.start(client, { replaced: call && replacedBy(call, client, upstream) });
  const cut = (): void => void request.destroy();
  response.once("close", cut);
  request.on("response", (answer) => passResponse(passing, answer));
  request.on("error", (error: NodeJS.ErrnoException) => {
    response.off("close", cut);
    if (response.destroyed || response.writableEnded) return;
    // An upstream may close an idle connection at the very moment at which we reuse it; then it has seen nothing of the request.
    if (mayRetry && request.reusedSocket && error.code === "ECONNRESET" && !response.headersSent) {
      passRequest(passing, false);
      return;
    }
    passing.refuse(response, problemOf(error));
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
  const { through, drop } = call?.answered(answer) ?? { through: [], drop: undefined };
  const fields = endToEnd(answer.rawHeaders, drop && { drop });
  for (const [name, value] of Object.entries(rateLimitFields)) fields.push(name, value);
  if (turnsAway()) fields.push("Connection", "close");
  response.writeHead(answer.statusCode!, answer.statusMessage, fields);
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

function problemOf(error: Error): Problem {
  return error.message === "the upstream fell silent"
    ? problem("upstream-silent", "the upstream did not answer in time")
    : problem("upstream-unreachable", "the upstream could not be reached");
}
