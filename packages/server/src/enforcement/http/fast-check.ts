/**
 * `POST /v1/check` straight from Node's HTTP server: the one route that a user's every request waits for.
 * Fastify's routing, hooks and reply cost more than the decision itself; here a check costs its parsing, its decision and its answer.
 * Only the plain case is taken (JSON of a known, small length, from no browser, no token or the right one). Whatever is unusual goes to Fastify's route
 * of the same name, which answers it in the same words: what is taken here is an optimisation, never a second contract.
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
  /** Whether an Authorization header may pass; absent: the data plane is open. */
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
    // ASCII, so its length is that in bytes, and Node need not look for other letters.
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

  /** The body is nearly always here already, in one piece with the headers: then it is read at once, without the stream's events. */
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
    // Node's parser holds the body to its Content-Length: it is whole when that is reached.
    request.on("data", (chunk: Buffer) => {
      received = received === null ? chunk : Buffer.concat([received, chunk]);
      if (received.length === length) finish(received);
    });
  }
}

/** How long the body of a plain request is; 0 if there is none, or if anything is unusual. */
function plainLength({ headers }: IncomingMessage): number {
  const length = Number(headers["content-length"]);
  const type = headers["content-type"];
  const plain =
    (type === "application/json" || type === JSON_TYPE) && headers.expect === undefined && headers.origin === undefined;
  return plain && length <= BODY_LIMIT ? length : 0;
}
