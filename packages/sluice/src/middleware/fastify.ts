/**
 * `sluice/fastify`: rate limits before the handlers of Fastify 5.
 *
 *   await app.register(rateLimit, { limit: 100, window: "1m" });
 *   app.get("/report", { config: { rateLimit: { limit: 5, window: "1h" } } }, handler);   // false: not limited
 *
 *   const check = app.createRateLimit({ limit: 3, window: "1h" });   // in a handler: await check(request)
 *
 * The decision is `request.rateLimit`. With `throwRefusals` a refusal is an error that reaches `setErrorHandler`. A plugin without `limit`,
 * `rules` or `limiter` limits only routes with their own limits.
 */
import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { SluiceError } from "../errors.js";
import { retryFields } from "../http/answer.js";
import { PROBLEM_CONTENT_TYPE, problemOf, refusalStatus } from "../http/problem.js";
import type { Decision } from "../limiter/decision.js";
import { fastifyAddress, nodeHops } from "./framework-address.js";
import { Gate, type RequestReader } from "./gate.js";
import { checkOptions, type GateOptions, hasRules, routeOptions } from "./gate-options.js";

export type { CostSource, EndedResponse, SettleOption } from "./settle-option.js";

export interface RouteRateLimit extends GateOptions<FastifyRequest> {
  /** A refusal is thrown as `RateLimitError` and reaches `setErrorHandler`; status and fields are already set. Default false. */
  throwRefusals?: boolean;
  /** Answers a refused request instead of the problem body; status, Retry-After and RateLimit fields are set already. */
  onRefused?: (request: FastifyRequest, reply: FastifyReply, decision: Decision) => unknown;
}

export interface RateLimitPluginOptions extends RouteRateLimit {
  /** When requests are counted. Default `onRequest`; a later hook sees the authenticated user, and the body. */
  hook?: "onRequest" | "preParsing" | "preValidation" | "preHandler";
}

declare module "fastify" {
  interface FastifyRequest {
    /** The decision that let this request through, or refused it; null for a request that was not counted. */
    rateLimit: Decision | null;
  }
  interface FastifyInstance {
    /**
     * A check to call inside a handler, with its own limits or the plugin's; each call counts. It sends nothing. Null for a request that
     * `skip` lets through, or whose client has disconnected. The caller must end a lease or a reservation.
     */
    createRateLimit(options?: RouteRateLimit): (request: FastifyRequest) => Promise<Decision | null>;
  }
  interface FastifyContextConfig {
    /** This route's own limits, instead of the plugin's; `false` for none. */
    rateLimit?: RouteRateLimit | false;
  }
}

/** A refusal as an error, with `throwRefusals`. */
export class RateLimitError extends Error {
  readonly code = "SLUICE_RATE_LIMITED";
  readonly statusCode: number;
  readonly decision: Decision;

  constructor(decision: Decision) {
    super(problemOf(decision).detail);
    this.name = "RateLimitError";
    this.statusCode = refusalStatus(decision);
    this.decision = decision;
  }
}

const HOOKS = ["onRequest", "preParsing", "preValidation", "preHandler"] as const;

const reader: RequestReader<FastifyRequest> = {
  raw: (request) => request.raw,
  method: (request) => request.method,
  target: (request) => request.originalUrl,
  hops: (request) => nodeHops(request.raw),
  address: fastifyAddress,
  legacyReset: "delta",
  extraOptions: ["onRefused", "hook", "throwRefusals"],
};

interface Guarded {
  readonly gate: Gate<FastifyRequest>;
  readonly onRefused: RouteRateLimit["onRefused"];
  readonly throwRefusals: boolean;
}

/** Async, so that mistakes in the options reject `register`: Fastify does not catch what a plugin throws synchronously. */
async function registerRateLimit(app: FastifyInstance, options: RateLimitPluginOptions): Promise<void> {
  const { hook = "onRequest", ...base } = options;
  if (!HOOKS.includes(hook))
    throw new SluiceError("invalid-setting", `hook: expected one of ${HOOKS.join(", ")}, got ${String(hook)}`);
  checkOptions(base, reader.extraOptions);
  const guardedBy = (own: RouteRateLimit): Guarded => {
    const { onRefused, throwRefusals = false } = own;
    return { gate: new Gate(own, reader), onRefused, throwRefusals };
  };
  const everywhere = hasRules(base) ? guardedBy(base) : undefined;
  const byRoute = new WeakMap<RouteRateLimit, Map<string, Guarded>>();
  const gates: Gate<FastifyRequest>[] = everywhere === undefined ? [] : [everywhere.gate];

  /** Made when the route is declared, so that mistakes stop the start; at its first request if it was declared before this plugin. */
  const guardedRoute = (own: RouteRateLimit, { method, url = "" }: RoutePlace): Guarded => {
    // Several routes may share one object of options.
    const places = byRoute.get(own) ?? new Map<string, Guarded>();
    byRoute.set(own, places);
    const place = placeOf({ method, url });
    let guarded = places.get(place);
    if (guarded === undefined) {
      const name = routeName(`${String(method)} ${url}`);
      guarded = guardedBy(routeOptions({ base, own, limiter: everywhere?.gate.limiter, name }));
      places.set(place, guarded);
      gates.push(guarded.gate);
    }
    return guarded;
  };

  let created = 0;
  const createRateLimit = (own: RouteRateLimit = {}): ((request: FastifyRequest) => Promise<Decision | null>) => {
    const name = routeName(`created ${created++}`);
    const { gate } = guardedBy(routeOptions({ base, own, limiter: everywhere?.gate.limiter, name }));
    gates.push(gate);
    // Each call is a separate check, however often a handler calls it for one request.
    return async (request) => (await gate.check(request, {})).decision ?? null;
  };
  if (!app.hasDecorator("createRateLimit")) app.decorate("createRateLimit", createRateLimit);
  if (!app.hasRequestDecorator("rateLimit")) app.decorateRequest("rateLimit", null);
  app.addHook("onRoute", ({ config, method, url }) => {
    if (config?.rateLimit) guardedRoute(config.rateLimit, { method, url });
  });
  const limit = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { config, method, url } = request.routeOptions;
    const own = config?.rateLimit;
    if (own === false) return undefined;
    const guarded = own === undefined ? everywhere : guardedRoute(own, { method, url });
    return guarded === undefined ? undefined : await pass(guarded, request, reply);
  };
  // The hooks differ only in arguments after the second, which are not used.
  app.addHook(hook as "onRequest", limit);
  app.addHook("onClose", async () => {
    await Promise.all(gates.map((gate) => gate.close()));
  });
}

/** Resolving to the reply ends the request here; resolving to undefined lets it continue. */
async function pass(
  { gate, onRefused, throwRefusals }: Guarded,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { decision, fields, left } = await gate.check(request);
  if (left) return reply.hijack();
  if (decision === undefined) return undefined;
  request.rateLimit = decision;
  for (const [name, value] of fields) reply.header(name, value);
  if (decision.allowed) {
    gate.holdUntilClose(decision, request, reply.raw);
    return undefined;
  }
  reply.code(refusalStatus(decision));
  for (const [name, value] of retryFields(decision)) reply.header(name, value);
  if (throwRefusals) throw new RateLimitError(decision);
  if (onRefused === undefined) return reply.type(PROBLEM_CONTENT_TYPE).send(JSON.stringify(problemOf(decision)));
  const answer = await onRefused(request, reply, decision);
  return reply.sent || answer === undefined || answer === reply ? reply : reply.send(answer);
}

interface RoutePlace {
  readonly method: string | readonly string[];
  readonly url?: string | undefined;
}

/** Fastify itself adds `HEAD /a` to `GET /a`, and `/a/` to the `/` under a prefix: to clients these are one route. */
function placeOf({ method, url = "" }: RoutePlace): string {
  const methods = String(method);
  return `${/\b(?:GET|HEAD)\b/.test(methods) ? "GET" : methods} ${url.replace(/\/$/, "")}`;
}

/** Routes count separately, under the same names in every process. The hash distinguishes `/a/b` from `/a-b`. */
function routeName(route: string): string {
  const slug = route
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return `${slug.slice(0, 48)}-${createHash("sha256").update(route).digest("hex").slice(0, 8)}`;
}

/** The two markers that fastify-plugin would set: hooks and decorators apply to the whole application, not to a child of it. */
export const rateLimit = Object.assign(registerRateLimit, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "sluice",
  [Symbol.for("plugin-meta")]: { name: "sluice", fastify: "5.x" },
});
