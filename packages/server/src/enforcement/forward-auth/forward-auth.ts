/**
 * `ANY /v1/forward-auth`, for gateways that ask before they forward a request (nginx auth_request, Caddy forward_auth, Traefik
 * ForwardAuth).
 * In: the gateway's subrequest; X-Forwarded-Method, -Uri, -Host and -For describe the client's request. Out: 200 with the RateLimit
 * headers, or the refusal for the client. `?deny=403` changes the status, because nginx relays only 401 and 403. `?wait=500ms` is how long
 * the gateway waits: a request whose turn (`maxWait`) comes later is refused. If the gateway gave up instead, it might let the request
 * pass, and the turn would be given back: nothing would be counted.
 *
 * Only one set of headers is read: a client could forge whichever one its gateway does not overwrite.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { type AcquireOptions, type Attributes, type Decision, type Limiter, SluiceError } from "sluice";
import { answerOf, type HeadersOption } from "sluice/http";
import { ClientLeft, parseDuration } from "sluice/internal";
import Type, { type Static } from "typebox";
import { acceptMalformedTypes } from "../../http/json-body.js";
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

/** Other parameters belong to the client: Caddy copies its request's query to the subrequest. */
const query = Type.Object({
  deny: Type.Optional(Type.Unknown({ description: "Status of a refusal, 4xx or 5xx, instead of 429 or 503." })),
  wait: Type.Optional(
    Type.Unknown({
      description:
        "How long the gateway waits at most for a turn under a rule with maxWait, such as 500ms: well below its own timeout.",
    }),
  ),
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

/** Undefined: as long as the rules allow. An unreadable value means no waiting, so that no gateway waits longer than it intended. */
function waitOf({ wait }: Static<typeof query>): number | undefined {
  return wait === undefined ? undefined : (parseDuration(wait) ?? 0);
}

function refusalStatus(deny: unknown, status: number): number {
  return typeof deny === "string" && /^[45]\d\d$/.test(deny) ? Number(deny) : status;
}

export function registerForwardAuth(app: FastifyInstance, options: ForwardAuthOptions): void {
  const { headers } = options;
  const observer = options.observe("forward-auth");
  app.register(async (scope) => {
    // A gateway may forward the client's body (Traefik's forwardBody), which is not our concern.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    acceptMalformedTypes(scope);
    // A request that cannot be judged is refused as well: nginx would treat 400 as a failure of ours.
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
        const decision = await decide(options, request, waitOf(request.query)).catch((error: unknown) => {
          if (request.socket.destroyed) return undefined;
          throw error;
        });
        // The gateway disconnected while its request waited for a turn: no answer can be delivered.
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

/** A gateway may forward the target as received or resolved, and we cannot know which: if they differ, both must pass. */
async function decide(
  { limiter, attributes }: ForwardAuthOptions,
  request: FastifyRequest,
  maxWaitMs: number | undefined,
): Promise<Decision> {
  const facts = factsOf(request);
  const known = await attributes.attributesOf(facts);
  const client = new ClientLeft(request.raw);
  try {
    const path = attributes.unresolvedPathOf(facts.target);
    return await decideFor(limiter, { known, path, asked: { hold: false, signal: client.signal, maxWaitMs } });
  } finally {
    client.forget();
  }
}

interface Asked {
  readonly known: Attributes;
  /** Set if the path can also be read in a second way. */
  readonly path: string | undefined;
  readonly asked: AcquireOptions;
}

async function decideFor(limiter: Limiter, { known, path, asked }: Asked): Promise<Decision> {
  const decision = await acquireWithoutLease(limiter, known, asked);
  if (!decision.allowed || path === undefined) return decision;
  const { maxWaitMs } = asked;
  const left = maxWaitMs === undefined ? undefined : maxWaitMs - decision.delayMs;
  let second: Decision | undefined;
  try {
    second = await acquireWithoutLease(limiter, { ...known, path }, { ...asked, maxWaitMs: left });
  } finally {
    // Refused, or the client left while it waited.
    if (second?.allowed !== true) await limiter.refund(decision);
  }
  return second.allowed ? decision : second;
}

/** A lease would have to be released when the response ends, which a gateway's subrequest cannot report. */
async function acquireWithoutLease(limiter: Limiter, attributes: Attributes, asked: AcquireOptions): Promise<Decision> {
  const decision = await limiter.acquire(attributes, asked);
  await decision.lease?.release();
  return decision;
}

/** Missing headers default to the gateway's own request, so that a rule by address works with a minimal setup. */
function factsOf({ raw, socket, method, url }: FastifyRequest): HttpRequestFacts {
  const { headers } = raw;
  return {
    method: single(headers["x-forwarded-method"]) ?? method,
    target: single(headers["x-forwarded-uri"]) ?? url,
    host: single(headers["x-forwarded-host"]) ?? headers.host,
    headers,
    rawHeaders: raw.rawHeaders,
    peer: socket.remoteAddress,
  };
}

/** A repeated header means that the gateway appended its own to the client's: neither can be trusted. */
function single(value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && !value.includes(", ")) return value;
  throw new SluiceError("invalid-request", "X-Forwarded-Method, -Uri, -Host: expected one value each, got several");
}
