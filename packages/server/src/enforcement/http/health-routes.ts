/** Liveness, readiness, metrics. Public even if the data plane requires a token: probes and scrapers send none. */
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Limiter } from "sluice";
import Type from "typebox";
import { problemResponses } from "../../http/problem-schema.js";

interface HealthOptions {
  readonly limiter: Limiter;
  /** The store's kind, for people. Never its URL, which may contain a password. */
  readonly storeKind: string;
  configurationStatus(): { readonly loaded: boolean; readonly lastError?: string };
  /** Whether a request carries one of our tokens. Database and file errors contain addresses and paths, which strangers must not see. */
  isKnown(request: FastifyRequest): Promise<boolean>;
  /** True from SIGTERM on: load balancers should stop sending requests. */
  isDraining(): boolean;
  /** Prometheus text, aggregated over all workers. */
  metricsText(): Promise<string>;
}

const readiness = Type.Object(
  {
    ready: Type.Boolean(),
    why: Type.Optional(Type.String()),
    rules: Type.Object({ count: Type.Integer(), version: Type.Integer() }),
    store: Type.Object({ kind: Type.String(), answers: Type.Boolean() }),
    configuration: Type.Unknown(),
  },
  { description: "Whether this instance should get traffic, and what it lacks." },
);

/** Probes and scrapers may use any host name. */
const anyHost = { host: "any" } as const;
const PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";

function plainText(description: string) {
  return { description, content: { "text/plain": { schema: Type.String() } } };
}

export function registerHealthRoutes(app: FastifyInstance, options: HealthOptions): void {
  const { limiter } = options;
  app.get(
    "/healthz",
    {
      config: anyHost,
      schema: { summary: "Live", tags: ["health"], response: { 200: Type.Object({ live: Type.Boolean() }) } },
    },
    () => Promise.resolve({ live: true }),
  );

  // envoyproxy/ratelimit's name for readiness, in plain text, with its statuses.
  app.get(
    "/healthcheck",
    {
      config: anyHost,
      schema: {
        summary: "Live, as envoyproxy/ratelimit tells it",
        tags: ["health"],
        response: { 200: plainText("OK"), 500: plainText("The instance is shutting down.") },
      },
    },
    (_request, reply) =>
      reply
        .code(options.isDraining() ? 500 : 200)
        .type("text/plain")
        .send(options.isDraining() ? "shutting down" : "OK"),
  );

  app.get(
    "/readyz",
    {
      config: anyHost,
      schema: { summary: "Ready for traffic", tags: ["health"], response: { 200: readiness, 503: readiness } },
    },
    async (request, reply) => {
      const answers = await limiter.ready();
      const { lastError, ...configuration } = options.configurationStatus();
      const isTold = lastError !== undefined && (await options.isKnown(request));
      const why = whyNotReady(options, answers);
      return reply.code(why === undefined ? 200 : 503).send({
        ready: why === undefined,
        ...(why !== undefined && { why }),
        rules: { count: limiter.rules.length, version: limiter.rulesVersion },
        store: { kind: options.storeKind, answers },
        configuration: { ...configuration, ...(isTold && { lastError }) },
      });
    },
  );

  app.get(
    "/metrics",
    {
      config: anyHost,
      schema: {
        summary: "Prometheus text",
        tags: ["health"],
        response: { 200: plainText("Metrics of all workers."), ...problemResponses(["internal"]) },
      },
    },
    async (_request, reply) => reply.type(PROMETHEUS_TEXT).send(await options.metricsText()),
  );
}

/**
 * A failed store makes an instance unready only if a rule says `deny`: its clients would get 503 here and may fare better elsewhere. Under
 * `allow` and `local` the instance still answers as configured, and taking a whole fleet out of rotation because of one Redis would turn a
 * loss of counting into an outage.
 */
function whyNotReady(
  { isDraining, limiter, configurationStatus }: HealthOptions,
  answers: boolean,
): string | undefined {
  if (isDraining()) return "the instance is shutting down";
  if (!configurationStatus().loaded) return "no rules could be read yet: nothing is limited";
  if (answers) return undefined;
  const denying = limiter.rules.find(({ onStoreFailure, mode }) => onStoreFailure === "deny" && mode !== "off");
  return denying && `the store does not answer, and rule ${denying.id} refuses without it`;
}
