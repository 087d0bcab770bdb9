/**
 * `ANY /v1/forward-auth`: for gateways that ask before they pass a request on (nginx auth_request, Caddy forward_auth, Traefik ForwardAuth).
 * In: the gateway's question; the client's own request stands in X-Forwarded-Method, -Uri, -Host and -For. Out: 200 with the RateLimit
 * fields, or the refusal as its client should see it. `?deny=403` changes the status, for nginx hands on only 401 and 403.
 *
 * One set of names is read, never two: a client could fill in the one that its gateway does not overwrite.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type Attributes, type Decision, type Limiter, SluiceError } from "sluice";
import { answerOf, type HeadersOption } from "sluice/http";
import { ClientLeft } from "sluice/internal";
import Type, { type Static } from "typebox";
import { problemOf } from "../../http/problem.js";
import { sendProblem } from "../../http/write-problem.js";
import type { Observe } from "../../monitoring/observe-requests.js";
import type { HttpRequestFacts, RequestAttributes } from "../attributes/request-attributes.js";

interface ForwardAuthOptions {
  readonly limiter: Limiter;
  readonly observe: Observe;
  readonly attributes: Pick<RequestAttributes, "attributesOf" | "unresolvedPathOf">;
  readonly headers: HeadersOption;
}

/** Other parameters are the client's own: Caddy hands the query of its request on to the question. */
const query = Type.Object({
  deny: Type.Optional(Type.Unknown({ description: "Status of a refusal, 4xx or 5xx, instead of 429 or 503." })),
});

const refusal = { content: { "application/problem+json": { schema: Type.Object({}, { title: "Refusal" }) } } };
const answers = {
  200: { type: "null", description: "It may pass; with the RateLimit fields." },
  429: { description: "Refused; the body and the fields are for the client.", ...refusal },
  503: {
    description: "Shed under load, or the store is away under onStoreFailure deny; with Retry-After.",
    ...refusal,
  },
  "4xx": { description: "Refused, with the status of ?deny.", ...refusal },
  "5xx": { description: "Refused, with the status of ?deny; or no decision could be made.", ...refusal },
};

function refusalStatus(deny: unknown, status: number): number {
  return typeof deny === "string" && /^[45]\d\d$/.test(deny) ? Number(deny) : status;
}

export function registerForwardAuth(app: FastifyInstance, options: ForwardAuthOptions): void {
  const { headers } = options;
  const observer = options.observe("forward-auth");
  app.register(async (scope) => {
    // A gateway may send the client's body along (Traefik's forwardBody); what is in it is not our business.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    // A request that cannot be judged is refused in the same way: nginx would take 400 for a failure of ours.
    scope.setErrorHandler((error, request, reply) => {
      const problem = problemOf(error);
      if (problem === undefined) throw error;
      const { deny } = request.query as Static<typeof query>;
      return sendProblem(reply, { ...problem, status: refusalStatus(deny, problem.status) });
    });
    scope.all<{ Querystring: Static<typeof query> }>(
      "/v1/forward-auth",
      {
        config: { host: "any" },
        schema: {
          summary: "May the request that a gateway holds pass?",
          tags: ["gateways"],
          querystring: query,
          response: answers,
        },
      },
      async (request, reply) => {
        const arrival = { sinceMs: performance.now(), traceparent: request.headers.traceparent };
        const decision = await decide(options, request).catch((error: unknown) => {
          if (request.socket.destroyed) return undefined;
          throw error;
        });
        // The gateway went away while its request waited for a turn: there is nobody to answer.
        if (decision === undefined) return reply.hijack();
        observer.decided(decision, arrival);
        const answer = answerOf(decision, { headers });
        reply.headers(answer.headers);
        if (answer.body === undefined) return reply.code(200).send();
        const status = refusalStatus(request.query.deny, answer.status);
        return reply
          .code(status)
          .serializer(JSON.stringify)
          .send({ ...answer.body, status });
      },
    );
  });
}

/** A gateway may pass the target on as it came or resolved, and we cannot see which: where they differ, both must pass. */
async function decide({ limiter, attributes }: ForwardAuthOptions, request: FastifyRequest): Promise<Decision> {
  const facts = factsOf(request);
  const known = await attributes.attributesOf(facts);
  const client = new ClientLeft(request.raw);
  try {
    return await decideFor(limiter, { known, path: attributes.unresolvedPathOf(facts.target), signal: client.signal });
  } finally {
    client.forget();
  }
}

interface Asked {
  readonly known: Attributes;
  /** Where it is read in another way too. */
  readonly path: string | undefined;
  readonly signal: () => AbortSignal;
}

async function decideFor(limiter: Limiter, { known, path, signal }: Asked): Promise<Decision> {
  const decision = await acquireWithoutLease(limiter, known, signal);
  if (!decision.allowed || path === undefined) return decision;
  const second = await acquireWithoutLease(limiter, { ...known, path }, signal);
  if (second.allowed) return decision;
  await limiter.refund(decision);
  return second;
}

/** A lease would have to be released when the response ends, which a gateway that only asks cannot tell. */
async function acquireWithoutLease(
  limiter: Limiter,
  attributes: Attributes,
  signal: () => AbortSignal,
): Promise<Decision> {
  const decision = await limiter.acquire(attributes, { hold: false, signal });
  await decision.lease?.release();
  return decision;
}

/** Missing headers are filled from the gateway's own request, so that a rule by address works with the barest set-up. */
function factsOf({ headers, raw, socket, method, url }: FastifyRequest): HttpRequestFacts {
  return {
    method: single(headers["x-forwarded-method"]) ?? method,
    target: single(headers["x-forwarded-uri"]) ?? url,
    host: single(headers["x-forwarded-host"]) ?? headers.host,
    headers,
    rawHeaders: raw.rawHeaders,
    peer: socket.remoteAddress,
  };
}

/** Two fields of one name mean that the gateway added its own to the client's: neither can be trusted. */
function single(value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && !value.includes(", ")) return value;
  throw new SluiceError("invalid-request", "X-Forwarded-Method, -Uri, -Host: expected one value each, got several");
}
