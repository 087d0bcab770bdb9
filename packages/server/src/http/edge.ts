/**
 * The HTTP edge: Fastify with our body parsing, errors, bounds and host check. Data plane, administration and dashboard add their routes
 * to it, so the same mistake gets the same answer everywhere.
 *
 * The life of a request, and the error exit of each step:
 *   headers   within 10 s and 16 KiB        408 `too-slow`, 431 `headers-too-large`; not HTTP: 400
 *   host      one of ours (own-hosts.ts)    400 without one; 421 `foreign-host`
 *   token     as the route requires         401 `unauthorized`, 403 `forbidden`, 429 `too-many-attempts`
 *   route     a known path and method       404 `not-found`, 405 `method-not-allowed`
 *   body      within 10 s and the limit     408, 413 `body-too-large`, 415 `unsupported-media-type`
 *   schema    no unknown or wrong fields    400 `invalid-request`
 *   handler   of the route                  a thrown error as its problem; an unexpected one 500 `internal`
 */
import { type IncomingMessage, METHODS, type ServerResponse } from "node:http";
import Fastify, { type FastifyInstance } from "fastify";
import type { Log } from "../log.js";
import { packageVersion } from "../own-package.js";
import { boundedServer } from "./bounded-server.js";
import { answerClientError, problemOfHost } from "./client-error.js";
import { isClosing } from "./drain.js";
import { answerBadAddress, handleErrors } from "./error-handlers.js";
import { refuseForeignHosts } from "./foreign-host.js";
import { acceptJson, BODY_LIMIT, validatorCompiler } from "./json-body.js";
import { registerOpenApi } from "./openapi.js";
import type { TlsFiles } from "./tls-files.js";
import { writeLastProblem } from "./write-problem.js";

/** Handles a request before Fastify does; returns false to leave it to Fastify. */
export type FastPath = (request: IncomingMessage, response: ServerResponse) => boolean;

interface EdgeOptions {
  readonly log: Pick<Log, "error">;
  readonly tls: TlsFiles | undefined;
  /** Whether the data plane requires a token; shown in the OpenAPI document. */
  readonly asksForToken: boolean;
  /** Whether clients should move to another instance while this one still serves. */
  isLameDuck(): boolean;
  /** Whether a Host header names this service. */
  isOwnHost(host: string | undefined): boolean;
  /** `turnsAway`: whether an answer should close its connection. */
  readonly fastPath?: (turnsAway: () => boolean) => FastPath;
}

export function createEdge(options: EdgeOptions): FastifyInstance {
  /**
   * Whether answers should carry `Connection: close`. Not while the accept queue drains, or the client would reconnect into it
   * (`drain.ts`).
   */
  const turnsAway = (): boolean => options.isLameDuck() || isClosing(app.server);
  const takes: FastPath = options.fastPath?.(turnsAway) ?? (() => false);
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    // During shutdown, requests on open connections are still answered normally.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (_error, request, reply) => void answerBadAddress(request, reply),
    // Fastify's default compilers would load Ajv and more: a quarter of all files read at startup.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        // Response schemas are documentation only; they do not strip fields.
        buildSerializer: () => () => JSON.stringify,
      },
    },
    serverFactory: (handle) =>
      boundedServer(options.tls, (request, response) => {
        const refused = problemOfHost(request);
        if (refused !== undefined) writeLastProblem(response, refused);
        else if (!takes(request, response)) handle(request, response);
      }),
  });
  // Route every method that Node parses: a gateway's auth request uses its client's method, WebDAV's and PURGE included. Declare them as
  // body-less, as no route of ours takes a body with them: otherwise Fastify demands a body before it answers 405.
  const known = new Set(app.supportedMethods.filter((method) => method !== "QUERY"));
  for (const method of METHODS) {
    if (method === "CONNECT" || known.has(method)) continue;
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  }
  handleErrors(app, options.log);
  acceptJson(app);
  app.addHook("onSend", async (_request, reply) => {
    if (turnsAway()) reply.header("connection", "close");
  });
  refuseForeignHosts(app, options);
  registerOpenApi(app, { version: packageVersion(), asksForToken: options.asksForToken });
  return app;
}
