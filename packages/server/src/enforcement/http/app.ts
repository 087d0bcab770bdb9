/**
 * The HTTP server: Fastify with our bodies, our errors, our bounds, and the data plane's routes.
 * In: the limiter and what surrounds it. Out: an app that others (administration, dashboard) may add routes to before it listens.
 *
 * The life of a request, and the exit of each step:
 *   headers   within 10 s and 16 KiB        408 `too-slow`, 431 `headers-too-large`; what is no HTTP: 400
 *   route     a path of ours, by its method 404 `not-found`, 405 `method-not-allowed`
 *   host      a name of ours (own-hosts.ts) 421 `foreign-host`
 *   token     where --api-token is set      401 `unauthorized`
 *   body      within 10 s and 64 KiB        408, 413 `body-too-large`
 *   schema    unknown or wrong fields       400 `invalid-request`
 *   decision  allowed or refused            200, both
 */
import { readFileSync } from "node:fs";
import { METHODS } from "node:http";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { Limiter } from "sluice";
import { isClosing } from "../../drain.js";
import { boundedServer } from "../../http/bounded-server.js";
import { answerClientError } from "../../http/client-error.js";
import { handleErrors } from "../../http/error-handlers.js";
import { refuseForeignHosts } from "../../http/foreign-host.js";
import { acceptJson, validatorCompiler } from "../../http/json-body.js";
import { registerOpenApi } from "../../http/openapi.js";
import { problem } from "../../http/problem.js";
import { sendProblem } from "../../http/write-problem.js";
import type { Log } from "../../log.js";
import type { Metrics } from "../../monitoring/metrics.js";
import type { TlsFiles } from "../../tls-files.js";
import { tokenGuard } from "./api-token.js";
import { BODY_LIMIT, registerCheckRoutes } from "./check-routes.js";
import { createFastCheck } from "./fast-check.js";
import { type HealthOptions, registerHealthRoutes } from "./health-routes.js";
import { registerLeaseRoutes } from "./lease-routes.js";

export interface HttpAppOptions extends HealthOptions {
  readonly limiter: Limiter;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly region: string | undefined;
  readonly apiToken: string | undefined;
  readonly tls: TlsFiles | undefined;
  /** Whether clients should turn to another instance, while this one still serves. */
  isLameDuck(): boolean;
  /** Whether a Host header names this service. */
  isOwnHost(host: string | undefined): boolean;
  /** Notes a wrong API token; resolves when the answer may go out, with the seconds to wait where its address failed too often. */
  noteFailure(request: FastifyRequest): Promise<number | undefined>;
  /** More routes of the data plane, behind the same token: forward-auth, Envoy's /json. */
  readonly dataPlane?: (app: FastifyInstance) => void | Promise<void>;
}

const packageVersion = (): string =>
  JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")).version;

export async function createHttpApp(options: HttpAppOptions): Promise<FastifyInstance> {
  const { log, apiToken } = options;
  const carriesToken = apiToken === undefined ? undefined : tokenGuard(apiToken);
  /** The peer should send its next request elsewhere. Not while the queue is emptied, or it would come back into it (`drain.ts`). */
  const turnsAway = (): boolean => options.isLameDuck() || isClosing(app.server);
  const fastCheck = createFastCheck({
    ...options,
    carriesToken,
    turnsAway,
    onUnexpected: (error) => log.error("a check failed", { error: String(error), stack: (error as Error)?.stack }),
  });
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    // A request that came on an open connection while we close is answered like any other.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    serverFactory: (handle) =>
      boundedServer(options.tls, (request, response) => {
        if (!fastCheck(request, response)) handle(request, response);
      }),
  });
  // A body is asked of QUERY by Fastify before it says that no route has the method.
  if (METHODS.includes("QUERY")) app.addHttpMethod("QUERY", { hasBody: false, overrideExisting: true });
  app.setValidatorCompiler(validatorCompiler as never);
  handleErrors(app, log);
  acceptJson(app);
  app.addHook("onSend", async (_request, reply) => {
    if (turnsAway()) reply.header("connection", "close");
  });

  refuseForeignHosts(app, options);

  await registerOpenApi(app, { version: packageVersion(), asksForToken: apiToken !== undefined });
  registerHealthRoutes(app, options);
  await app.register(async (dataPlane) => {
    dataPlane.addHook("onRoute", (route) => {
      route.config = { host: "own-for-browsers", ...route.config };
    });
    if (carriesToken !== undefined) {
      dataPlane.addHook("onRequest", async (request, reply) => {
        const { authorization } = request.headers;
        if (carriesToken(authorization)) return;
        const waitSeconds = authorization === undefined ? undefined : await options.noteFailure(request);
        if (waitSeconds !== undefined) reply.header("connection", "close");
        return sendProblem(reply, problem("unauthorized", "authorization: expected Bearer and the API token"));
      });
    }
    registerCheckRoutes(dataPlane, options);
    registerLeaseRoutes(dataPlane, options);
    await options.dataPlane?.(dataPlane);
  });
  return app;
}
