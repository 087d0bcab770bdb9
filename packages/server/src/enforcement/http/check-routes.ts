/**
 * The routes that ask for a decision: check, check/batch, charge, peek, explain. A refusal is answered 200 like any decision.
 */
import type { FastifyInstance } from "fastify";
import type { Attributes, CheckOptions, Limiter } from "sluice";
import { problemBody, problemOf } from "../../http/problem.js";
import type { Metrics } from "../../monitoring/metrics.js";
import { decisionText } from "./decision-text.js";
import { type BatchBody, batchAnswer, batchBody, type CheckBody, checkBody, decision, explanation } from "./schemas.js";

export interface CheckRouteOptions {
  readonly limiter: Limiter;
  readonly metrics: Metrics;
  /** The attribute `region` of requests that name none. */
  readonly region: string | undefined;
}

/** Contract, section 4. A batch of 1000 needs more room than a check. */
const BATCH_BODY_LIMIT = 1024 * 1024;

export function registerCheckRoutes(app: FastifyInstance, { limiter, metrics, region }: CheckRouteOptions): void {
  const attributesOf = (body: CheckBody): Attributes =>
    region === undefined || Object.hasOwn(body.attributes, "region") ? body.attributes : { ...body.attributes, region };

  app.post<{ Body: CheckBody }>(
    "/v1/check",
    {
      schema: {
        summary: "Decide and charge",
        tags: ["checks"],
        body: checkBody,
        response: { 200: decision },
      },
    },
    // No async function here: on the hottest path of the service, the promise that the limiter gives is enough.
    ({ body, headers: { traceparent } }) => {
      const sinceMs = performance.now();
      return limiter.check(attributesOf(body), optionsOf(body)).then((made) => {
        const { allowed } = made;
        metrics.answered("http", { allowed, matched: made.checks.length > 0 }, sinceMs);
        metrics.traced?.({ transport: "http", allowed, sinceMs, traceparent, decision: made });
        return made;
      });
    },
  );

  app.post<{ Body: BatchBody }>(
    "/v1/check/batch",
    {
      bodyLimit: BATCH_BODY_LIMIT,
      schema: {
        summary: "Decide and charge up to 1000 requests, each by itself, in order; a mistake is answered in its place",
        tags: ["checks"],
        body: batchBody,
        response: { 200: batchAnswer },
      },
    },
    async ({ body, headers: { traceparent } }, reply) => {
      const sinceMs = performance.now();
      // All at once: on Redis they share script calls, and both stores decide in the order of arrival.
      const settled = await Promise.allSettled(
        body.requests.map((one) => limiter.check(attributesOf(one), optionsOf(one))),
      );
      // A mistake in one is answered in its place: the others are charged by now, and their callers wait for the answers.
      const decisions = settled.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
      for (const made of decisions) {
        if (made === undefined) continue;
        metrics.answered("http", { allowed: made.allowed, matched: made.checks.length > 0 }, sinceMs);
      }
      const texts = settled.map((outcome) =>
        outcome.status === "fulfilled" ? decisionText(outcome.value) : problemText(outcome.reason),
      );
      // One span for the batch: a thousand would say no more.
      const allowed = decisions.every((made) => made?.allowed === true);
      metrics.traced?.({ transport: "http", allowed, sinceMs, traceparent });
      return reply.type("application/json; charset=utf-8").send(`{"decisions":[${texts.join(",")}]}`);
    },
  );

  app.post<{ Body: CheckBody }>(
    "/v1/charge",
    {
      schema: {
        summary: "Charge a cost that has been incurred: never refused, counters may pass their limits",
        tags: ["checks"],
        body: checkBody,
        response: { 200: decision },
      },
    },
    async ({ body, headers: { traceparent } }) => {
      const sinceMs = performance.now();
      const made = await limiter.charge(attributesOf(body), optionsOf(body));
      metrics.answered("http", { allowed: true, matched: made.checks.length > 0 }, sinceMs);
      metrics.traced?.({ transport: "http", allowed: true, sinceMs, traceparent, decision: made });
      return made;
    },
  );

  app.post<{ Body: CheckBody }>(
    "/v1/peek",
    {
      schema: {
        summary: "The decision that a check would get, without charging",
        tags: ["checks"],
        body: checkBody,
        response: { 200: decision },
      },
    },
    async ({ body }) => await limiter.peek(attributesOf(body), optionsOf(body)),
  );

  app.post<{ Body: CheckBody }>(
    "/v1/explain",
    {
      schema: {
        summary: "A peek that tells which rules were considered, and why each applies or not",
        tags: ["checks"],
        body: checkBody,
        response: { 200: explanation },
      },
    },
    async ({ body }) => await limiter.explain(attributesOf(body), optionsOf(body)),
  );
}

/** A mistake of one caller in a batch; anything else is everybody's. */
function problemText(error: unknown): string {
  const problem = problemOf(error);
  if (problem === undefined || problem.status >= 500) throw error;
  return JSON.stringify(problemBody(problem));
}

function optionsOf({ cost, id }: CheckBody): CheckOptions {
  // `undefined` and absent are not the same to the compiler, and this is cheaper than building the object field by field.
  return { cost, id } as CheckOptions;
}
