/** How Fastify answers errors, unknown paths and unknown methods. The same for every route. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "../log.js";
import { collectMethods } from "./allowed-methods.js";
import { unsupportedType } from "./json-body.js";
import { lingerAfter } from "./lingering-close.js";
import { internalProblem, problem, problemOf } from "./problem.js";
import { sendProblem } from "./write-problem.js";

const LONGEST_SHOWN = 200;

/** Call this before adding routes: methods are collected as routes are added. */
export function handleErrors(app: FastifyInstance, log: Pick<Log, "error">): void {
  collectMethods(app);
  app.setErrorHandler((error, request, reply) => answerError(log, { error, request, reply }));
  app.setNotFoundHandler(answerNotFound);
  // Runs before the body is read and after the authentication hooks: a wrong path or method never gets an error about its body.
  app.addHook("preParsing", (request, reply, payload, done) => {
    if (request.is404) answerNotFound(request, reply);
    else done(null, payload);
  });
}

function answerError(
  log: Pick<Log, "error">,
  { error, request, reply }: { error: unknown; request: FastifyRequest; reply: FastifyReply },
): FastifyReply {
  const { code } = error as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return refuseBody(request, reply);
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return refuseType(request, reply);
  const known = problemOf(error);
  if (known !== undefined) return sendProblem(reply, known);
  const { method, routeOptions } = request;
  log.error("a request failed", {
    method,
    path: routeOptions.url,
    error: String(error),
    stack: (error as Error)?.stack,
  });
  return sendProblem(reply, internalProblem);
}

/** The rest of the body is still arriving: close the connection, but only after the client could read the answer. */
function refuseBody({ routeOptions }: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header("connection", "close");
  lingerAfter(reply.raw);
  return sendProblem(reply, problem("body-too-large", `body: expected at most ${sizeText(routeOptions.bodyLimit)}`));
}

function refuseType({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendProblem(reply, problemOf(unsupportedType(headers["content-type"] ?? "none"))!);
}

function sizeText(bytes: number): string {
  return bytes >= 2 ** 20 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 10} KiB`;
}

/**
 * Answers a URL that cannot be decoded (`/rules/%`), or has a segment longer than any id. A browser is redirected to the console's "not
 * found" page with every "%" escaped; the escaped URL decodes, so there is no loop. Never redirects to another host.
 */
export function answerBadAddress(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split("?", 1)[0]!;
  const isVisit = request.method === "GET" && /\btext\/html\b/i.test(request.headers.accept ?? "");
  if (isVisit && path.includes("%")) {
    const local = path.replace(/^[/\\]+/, "").replaceAll("%", "%25");
    return reply.code(302).header("location", `/${local}`).send();
  }
  return sendProblem(reply, problem("not-found", `nothing answers ${request.method} ${path.slice(0, LONGEST_SHOWN)}`));
}

/** 404, or 405 if the path supports other methods. A scope with its own hooks must set this again, so that they run before it. */
export function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split("?", 1)[0]!;
  const shown = path.slice(0, LONGEST_SHOWN);
  const methods = request.server.methodsOf(path);
  if (methods.length === 0)
    return sendProblem(reply, problem("not-found", `nothing answers ${request.method} ${shown}`));
  const allowed = methods.join(", ");
  reply.header("allow", allowed);
  return sendProblem(reply, problem("method-not-allowed", `${shown} answers ${allowed}, not ${request.method}`));
}
