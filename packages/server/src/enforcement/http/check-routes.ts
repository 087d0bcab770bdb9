/** The routes that return a decision: check, check/batch, charge, peek, explain. A refusal is a 200, like any decision. */
import type { FastifyInstance } from "fastify";
import type { Attributes, CheckOptions, Limiter } from "sluice";
import { problemBody, problemOf } from "../../http/problem.js";
import type { Observe } from "../../monitoring/observe-requests.js";
import { decisionText, explanationText } from "./decision-text.js";
import { type BatchBody, batchAnswer, batchBody, type CheckBody, checkBody, decision, explanation } from "./schemas.js";

export interface CheckRouteOptions {
  readonly limiter: Limiter;
  readonly observe: Observe;
  /** Default for the attribute `region`. */
  readonly region: string | undefined;
}

/** Contract, section 4. A batch of 1000 needs more room than a check. */
const BATCH_BODY_LIMIT = 1024 * 1024;

export function registerCheckRoutes(app: FastifyInstance, options: CheckRouteOptions): void {
  const { limiter, observe, region } = options;
  const observer = observe("http");
  const attributesOf = (body: CheckBody): Attributes =>
    region === undefined || Object.hasOwn(body.attributes, "region") ? body.attributes : { ...body.attributes, region };

  app.post<{ Body: CheckBody }>(
    "/v1/check",
    decisionRoute("Decide and charge"),
    // Not an async function: on the hottest path, the limiter's own promise is enough.
    ({ body, headers: { traceparent } }) => {
      const arrival = { sinceMs: performance.now(), traceparent };
      return limiter.check(attributesOf(body), optionsOf(body)).then((made) => {
        observer.decided(made, arrival);
        return made;
      });
    },
  );

  app.post<{ Body: BatchBody }>("/v1/check/batch", batchRoute, async ({ body, headers: { traceparent } }, reply) => {
    const arrival = { sinceMs: performance.now(), traceparent };
    // Concurrently: Redis batches them into shared script calls, and both stores decide in order of arrival.
    const settled = await Promise.allSettled(
      body.requests.map((one) => limiter.check(attributesOf(one), optionsOf(one))),
    );
    // A mistake in one is answered in place: the others have been charged, and their callers need the answers.
    const decisions = settled.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
    observer.batchDecided(decisions, arrival);
    const texts = settled.map((outcome) =>
      outcome.status === "fulfilled" ? decisionText(outcome.value) : problemText(outcome.reason),
    );
    return reply.type("application/json; charset=utf-8").send(`{"decisions":[${texts.join(",")}]}`);
  });

  app.post<{ Body: CheckBody }>(
    "/v1/charge",
    decisionRoute("Charge a cost that has been incurred: never refused, counters may pass their limits"),
    async ({ body, headers: { traceparent } }) => {
      const arrival = { sinceMs: performance.now(), traceparent };
      const made = await limiter.charge(attributesOf(body), optionsOf(body));
      // A charge is never refused, whatever the counters say.
      observer.answered({ allowed: true, matched: made.checks.length > 0, decision: made }, arrival);
      return made;
    },
  );

  app.post<{ Body: CheckBody }>(
    "/v1/peek",
    decisionRoute("The decision that a check would get, without charging"),
    async ({ body }) => await limiter.peek(attributesOf(body), optionsOf(body)),
  );

  app.post<{ Body: CheckBody }>(
    "/v1/explain",
    {
      schema: {
        summary: "A peek that lists the rules considered, and why each applies or not",
        tags: ["checks"],
        body: checkBody,
        response: { 200: explanation },
      },
      serializerCompiler: () => explanationText as (made: unknown) => string,
    },
    async ({ body }) => await limiter.explain(attributesOf(body), optionsOf(body)),
  );
}

/** A route that takes one request and answers with a decision. */
function decisionRoute(summary: string) {
  return {
    schema: { summary, tags: ["checks"], body: checkBody, response: { 200: decision } },
    serializerCompiler: () => decisionText as (made: unknown) => string,
  };
}

const batchRoute = {
  bodyLimit: BATCH_BODY_LIMIT,
  schema: {
    summary: "Decide and charge up to 1000 requests, each on its own, in order; a mistake is answered in its place",
    tags: ["checks"],
    body: batchBody,
    response: { 200: batchAnswer },
  },
};

/** For a caller's mistake within a batch; any other failure fails the whole batch. */
function problemText(error: unknown): string {
  const problem = problemOf(error);
  if (problem === undefined || problem.status >= 500) throw error;
  return JSON.stringify(problemBody(problem));
}

function optionsOf({ cost, id }: CheckBody): CheckOptions {
  // To the compiler `undefined` and absent differ, and the cast is cheaper than building the object field by field.
  return { cost, id } as CheckOptions;
}
