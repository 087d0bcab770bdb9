/**
 * `POST /v1/check` directly on Node's HTTP server: the one route that every request of a user waits for.
 * Fastify's routing, hooks and reply cost more than the decision; here a check costs parsing, decision and answer.
 * Takes only the plain case (JSON of a known, small length, no browser, no token or the right one). Everything else goes to Fastify's route
 * of the same path, which answers identically: this is an optimisation, never a second contract.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Attributes, type CheckOptions, type Decision, type Limiter, SluiceError } from "sluice";
import type { FastPath } from "../../http/edge.js";
import { BODY_LIMIT, parseJson } from "../../http/json-body.js";
import { internalProblem, problemOf } from "../../http/problem.js";
import { validatorOf } from "../../http/schema-mistake.js";
import { writeProblem } from "../../http/write-problem.js";
import type { Log } from "../../log.js";
import type { Observe } from "../../monitoring/observe-requests.js";
import { decisionText } from "./decision-text.js";
import { type CheckBody, checkBody } from "./schemas.js";
import { SendTogether } from "./send-together.js";

interface FastCheckOptions {
  readonly limiter: Limiter;
  readonly observe: Observe;
  readonly region: string | undefined;
  /** Checks an Authorization header for the API token; absent: the data plane is open. */
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  readonly turnsAway: () => boolean;
  readonly log: Pick<Log, "error">;
}

const JSON_TYPE = "application/json; charset=utf-8";

export function createFastCheck(options: FastCheckOptions): FastPath {
  const { limiter, region, carriesToken, log } = options;
  const observer = options.observe("http");
  const validate = validatorOf(checkBody);
  const answers = new SendTogether((response, text) => {
    if (options.turnsAway()) response.setHeader("connection", "close");
    // ASCII, so its length equals its byte length, and latin1 is the fastest encoding.
    response.writeHead(200, { "content-type": JSON_TYPE, "content-length": text.length });
    response.end(text, "latin1");
  });

  function answer(response: ServerResponse, sinceMs: number, made: Decision): void {
    const { traceparent } = response.req.headers;
    observer.decided(made, { sinceMs, traceparent });
    answers.add(response, decisionText(made));
  }

  function fail(response: ServerResponse, error: unknown): void {
    const problem = problemOf(error);
    if (problem === undefined) log.error("a check failed", { error: String(error), stack: (error as Error)?.stack });
    if (options.turnsAway()) response.setHeader("connection", "close");
    writeProblem(response, problem ?? internalProblem);
  }

  function decide(response: ServerResponse, sinceMs: number, bytes: Buffer): void {
    const body = parseJson(bytes);
    const wrong = validate(body, "body");
    if (wrong !== undefined) throw new SluiceError("invalid-request", wrong);
    const { attributes, cost, id } = body as CheckBody;
    const known: Attributes =
      region === undefined || Object.hasOwn(attributes, "region") ? attributes : { ...attributes, region };
    const made = limiter.checkNow(known, { cost, id } as CheckOptions);
    if (made instanceof Promise) {
      made.then(
        (decision) => answer(response, sinceMs, decision),
        (error) => fail(response, error),
      );
    } else answer(response, sinceMs, made);
  }

  return (request, response) => {
    if (request.url !== "/v1/check" || request.method !== "POST") return false;
    const length = plainLength(request);
    if (length === 0) return false;
    if (carriesToken !== undefined && !carriesToken(request.headers.authorization)) return false;
    process.nextTick(receive, request, response, length);
    return true;
  };

  /** The body nearly always arrives with the headers: then it is read at once, without stream events. */
  function receive(request: IncomingMessage, response: ServerResponse, length: number): void {
    const sinceMs = performance.now();
    let received = request.read() as Buffer | null;
    const finish = (bytes: Buffer): void => {
      try {
        decide(response, sinceMs, bytes);
      } catch (error) {
        fail(response, error);
      }
    };
    if (received !== null && received.length === length) {
      finish(received);
      return;
    }
    // Node's parser enforces Content-Length, so the body is complete at that length.
    request.on("data", (chunk: Buffer) => {
      received = received === null ? chunk : Buffer.concat([received, chunk]);
      if (received.length === length) finish(received);
    });
  }
}

/** The body length of a plain request; 0 if it has none, or is unusual in any way. */
function plainLength({ headers }: IncomingMessage): number {
  const length = Number(headers["content-length"]);
  const type = headers["content-type"];
  const plain =
    (type === "application/json" || type === JSON_TYPE) && headers.expect === undefined && headers.origin === undefined;
  return plain && length <= BODY_LIMIT ? length : 0;
}
