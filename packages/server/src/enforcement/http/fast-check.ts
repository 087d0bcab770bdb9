/**
 * `POST /v1/check` straight from Node's HTTP server: the one route that a user's every request waits for.
 * Fastify's routing, hooks and reply cost more than the decision itself; here a check costs its parsing, its decision and its answer.
 * Only the plain case is taken (JSON of a known, small length, no token or the right one). Whatever is unusual goes to Fastify's route
 * of the same name, which answers it in the same words: what is taken here is an optimisation, never a second contract.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import fastJson from "fast-json-stringify";
import { type Attributes, type CheckOptions, type Decision, type Limiter, SluiceError } from "sluice";
import type { Metrics } from "../../monitoring/metrics.js";
import { BODY_LIMIT } from "./check-routes.js";
import { invalidJson, validatorOf } from "./json-body.js";
import { internalProblem, type Problem, problemBody, problemOf } from "./problem.js";
import { type CheckBody, checkBody, decision } from "./schemas.js";

export interface FastCheckOptions {
  readonly limiter: Limiter;
  readonly metrics: Metrics;
  readonly region: string | undefined;
  /** Whether an Authorization header may pass; absent: the data plane is open. */
  readonly carriesToken: ((authorization: string | undefined) => boolean) | undefined;
  isDraining(): boolean;
  onUnexpected(error: unknown): void;
}

const JSON_TYPE = "application/json; charset=utf-8";
const PROBLEM_TYPE = "application/problem+json";

/** True if the request was taken. */
export type FastCheck = (request: IncomingMessage, response: ServerResponse) => boolean;

export function createFastCheck(options: FastCheckOptions): FastCheck {
  const { limiter, metrics, region, carriesToken } = options;
  const validate = validatorOf(checkBody);
  const spell = fastJson(decision as never) as (made: Decision) => string;

  function answer(response: ServerResponse, sinceMs: number, made: Decision): void {
    const { allowed } = made;
    metrics.answered("http", allowed, sinceMs);
    metrics.traced?.({
      transport: "http",
      allowed,
      sinceMs,
      traceparent: response.req.headers.traceparent as string | undefined,
      decision: made,
    });
    send(response, 200, JSON_TYPE, spell(made));
  }

  function fail(response: ServerResponse, error: unknown): void {
    let problem: Problem | undefined = problemOf(error);
    if (problem === undefined) {
      options.onUnexpected(error);
      problem = internalProblem;
    }
    send(response, problem.status, PROBLEM_TYPE, JSON.stringify(problemBody(problem)));
  }

  function send(response: ServerResponse, status: number, type: string, text: string): void {
    if (options.isDraining()) response.setHeader("connection", "close");
    response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
    response.end(text);
  }

  function decide(response: ServerResponse, sinceMs: number, text: string): void {
    const body = parse(text);
    const wrong = validate(body, "body");
    if (wrong !== undefined) throw new SluiceError("invalid-request", wrong);
    const { attributes, cost, id } = body as CheckBody;
    const known: Attributes =
      region === undefined || Object.hasOwn(attributes, "region") ? attributes : { ...attributes, region };
    limiter.check(known, { cost, id } as CheckOptions).then(
      (made) => answer(response, sinceMs, made),
      (error) => fail(response, error),
    );
  }

  return (request, response) => {
    if (request.url !== "/v1/check" || request.method !== "POST" || !isPlain(request)) return false;
    if (carriesToken !== undefined && !carriesToken(request.headers.authorization)) return false;
    const sinceMs = performance.now();
    let received: Buffer | undefined;
    // Node's parser holds the body to its Content-Length, so it cannot grow past what `isPlain` accepted.
    request.on("data", (chunk: Buffer) => {
      received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    });
    request.on("end", () => {
      try {
        decide(response, sinceMs, received === undefined ? "" : received.toString());
      } catch (error) {
        fail(response, error);
      }
    });
    return true;
  };
}

function isPlain({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  const type = headers["content-type"];
  return (
    length !== undefined &&
    Number(length) <= BODY_LIMIT &&
    (type === "application/json" || type === JSON_TYPE) &&
    headers.expect === undefined
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidJson(error);
  }
}
