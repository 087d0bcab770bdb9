/**
 * The HTTP edge: Fastify with our bodies, errors, bounds and host check. Data plane, administration and dashboard add their routes to it,
 * and so answer the same mistakes alike.
 *
 * The life of a request, and the exit of each step:
 *   headers   within 10 s and 16 KiB        408 `too-slow`, 431 `headers-too-large`; bytes that are no HTTP: 400
 *   host      a name of ours (own-hosts.ts) 400 without one; 421 `foreign-host`
 *   token     as the routes ask             401 `unauthorized`, 403 `forbidden`, 429 `too-many-attempts`
 *   route     a path of ours, by its method 404 `not-found`, 405 `method-not-allowed`
 *   body      within 10 s and the limit     408, 413 `body-too-large`, 415 `unsupported-media-type`
 *   schema    unknown or wrong fields       400 `invalid-request`
 *   handler   of the route                  an error it throws as its problem; an unexpected one 500 `internal`
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

/** Takes a request before Fastify does; false leaves it to Fastify. */
export type FastPath = (request: IncomingMessage, response: ServerResponse) => boolean;

interface EdgeOptions {
  readonly log: Pick<Log, "error">;
  readonly tls: TlsFiles | undefined;
  /** Whether the data plane asks for a token; the OpenAPI document says so. */
  readonly asksForToken: boolean;
  /** Whether clients should turn to another instance, while this one still serves. */
  isLameDuck(): boolean;
  /** Whether a Host header names this service. */
  isOwnHost(host: string | undefined): boolean;
  /** `turnsAway`: whether an answer should end its connection. */
  readonly fastPath?: (turnsAway: () => boolean) => FastPath;
}

export function createEdge(options: EdgeOptions): FastifyInstance {
  /** The peer should send its next request elsewhere. Not while the queue is emptied, or it would come back into it (`drain.ts`). */
  const turnsAway = (): boolean => options.isLameDuck() || isClosing(app.server);
  const takes: FastPath = options.fastPath?.(turnsAway) ?? (() => false);
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT,
    // A request that came on an open connection while we close is answered like any other.
    return503OnClosing: false,
    clientErrorHandler: answerClientError,
    frameworkErrors: (_error, request, reply) => void answerBadAddress(request, reply),
    // Fastify's own compilers would be loaded with it, Ajv among them: a quarter of the files that a start would read.
    schemaController: {
      compilersFactory: {
        buildValidator: () => validatorCompiler as never,
        // The schemas of answers describe them; they do not cut them.
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
  // Every method that Node reads: a gateway asks with its client's, WebDAV's and PURGE among them. Without a body, which no route of ours
  // takes under such a method: Fastify would ask for it before it says that no route has the method.
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
