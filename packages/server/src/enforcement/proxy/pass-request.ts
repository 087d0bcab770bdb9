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
import { problem } from "../../http/problem.js";
import { writeLastProblem } from "../../http/write-problem.js";
import { endToEnd } from "./message-headers.js";
import type { Upstream } from "./upstream.js";

interface Passing {
  readonly client: IncomingMessage;
  readonly response: ServerResponse;
  readonly upstream: Upstream;
  /** Added to the upstream's own. */
  readonly rateLimitFields: Readonly<Record<string, string>>;
  readonly turnsAway: () => boolean;
}

export function passRequest(passing: Passing, mayRetry = hasNoBody(passing.client)): void {
  const { client, response, upstream } = passing;
  const request = upstream.start(client);
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
    refuse(response, error);
  });
  if (hasNoBody(client)) request.end();
  else sendBody(client, request);
}

function passResponse({ response, rateLimitFields, turnsAway }: Passing, answer: IncomingMessage): void {
  const fields = endToEnd(answer.rawHeaders);
  for (const [name, value] of Object.entries(rateLimitFields)) fields.push(name, value);
  if (turnsAway()) fields.push("Connection", "close");
  response.writeHead(answer.statusCode!, answer.statusMessage, fields);
  // Headers at once: a stream of events may have its first event in an hour.
  response.flushHeaders();
  pipeline(answer, response, (error) => {
    if (error != null) response.destroy();
  });
}

function sendBody(client: IncomingMessage, request: ClientRequest): void {
  client.pipe(request);
  client.once("close", () => {
    if (!client.complete) request.destroy();
  });
}

export function hasNoBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] === undefined && (length === undefined || length === "0");
}

function refuse(response: ServerResponse, error: Error): void {
  const silent = error.message === "the upstream fell silent";
  writeLastProblem(
    response,
    silent
      ? problem("upstream-silent", "the upstream did not answer in time")
      : problem("upstream-unreachable", "the upstream could not be reached"),
  );
}
