/**
 * Errors as `application/problem+json` (RFC 9457) with a stable `code`. A refusal never comes here.
 * What was thrown inside stays inside: an unexpected error is logged whole and told as `internal`.
 */
import { STATUS_CODES } from "node:http";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type ErrorCode, SluiceError } from "sluice";
import type { Log } from "../../log.js";
import { lingerAfter } from "./lingering-close.js";

/** The codes of the service itself, beside those of the library (`errors.ts` there). `docs/service.md` lists both, held equal by a test. */
export const serviceErrorKinds = {
  unauthorized: { status: 401, remedy: "Send `Authorization: Bearer` and the token of --api-token." },
  "not-found": { status: 404, remedy: "/docs lists what there is." },
  "method-not-allowed": { status: 405, remedy: "Use a method that the `Allow` header names." },
  "too-slow": { status: 408, remedy: "Send headers and body within ten seconds." },
  "body-too-large": { status: 413, remedy: "A check has at most 64 KiB, a batch 1 MiB." },
  "unsupported-media-type": { status: 415, remedy: "Send JSON with `Content-Type: application/json`." },
  "foreign-host": {
    status: 421,
    remedy: "Call the service by its address or localhost, or name the host in --allowed-hosts.",
  },
  "headers-too-large": { status: 431, remedy: "Send at most 16 KiB of headers." },
  internal: { status: 500, remedy: "Sluice failed; its log says why." },
  "unsupported-coding": {
    status: 501,
    remedy: "Through the proxy, send bodies with Content-Length or `Transfer-Encoding: chunked`.",
  },
  "upstream-unreachable": { status: 502, remedy: "Check that the server of --upstream is up." },
  "upstream-silent": { status: 504, remedy: "The server of --upstream said nothing for two minutes." },
} as const;

export interface Problem {
  readonly status: number;
  readonly code: keyof typeof serviceErrorKinds | ErrorCode;
  readonly detail: string;
}

/** What is told where the cause is nobody's business. */
export const internalProblem: Problem = { status: 500, code: "internal", detail: serviceErrorKinds.internal.remedy };

/** What Fastify itself refuses, in our words. */
const frameworkProblems: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    status: 400,
    code: "invalid-request",
    detail: "body: its length is not what Content-Length says",
  },
};

export function problemBody({ status, code, detail }: Problem): Record<string, unknown> {
  return { type: "about:blank", title: STATUS_CODES[status] ?? "Error", status, detail, code };
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  // Sent as text: the route's schemas describe its answers, and Fastify would cut this one to their shape.
  return reply
    .code(problem.status)
    .type("application/problem+json")
    .serializer(JSON.stringify)
    .send(problemBody(problem));
}

export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof SluiceError) return { status: error.status, code: error.code, detail: error.message };
  const { code, validation, statusCode, message } = error as Partial<FastifyError>;
  if (code !== undefined && Object.hasOwn(frameworkProblems, code)) return frameworkProblems[code]!;
  if (validation !== undefined) return { status: 400, code: "invalid-request", detail: message ?? "body: not valid" };
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return { status: statusCode, code: "invalid-request", detail: message ?? "not valid" };
  }
  return undefined;
}

export function errorHandler(log: Log) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { code } = error as Partial<FastifyError>;
    if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return refuseBody(request, reply);
    if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return refuseType(request, reply);
    const problem = problemOf(error);
    if (problem !== undefined) return sendProblem(reply, problem);
    log.error("a request failed", {
      method: request.method,
      path: request.routeOptions.url,
      error: String(error),
      stack: (error as Error)?.stack,
    });
    return sendProblem(reply, internalProblem);
  };
}

/** The rest of the body is still under way: the connection ends, but not before the client could read why. */
function refuseBody(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const most = request.routeOptions.bodyLimit;
  reply.header("connection", "close");
  lingerAfter(reply.raw);
  return sendProblem(reply, {
    status: 413,
    code: "body-too-large",
    detail: `body: expected at most ${sizeText(most)}`,
  });
}

function refuseType({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const came = headers["content-type"]?.slice(0, 100) ?? "none";
  const detail = `content-type: expected application/json, got ${came}`;
  return sendProblem(reply, { status: 415, code: "unsupported-media-type", detail });
}

function sizeText(bytes: number): string {
  return bytes >= 2 ** 20 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 10} KiB`;
}

/** 404, or 405 where the path answers other methods. */
export function notFoundHandler(methodsOf: (path: string) => readonly string[]) {
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const path = request.url.split("?", 1)[0]!;
    const shown = path.slice(0, 200);
    const methods = methodsOf(path);
    if (methods.length > 0) {
      reply.header("allow", methods.join(", "));
      const detail = `${shown} answers ${methods.join(", ")}, not ${request.method}`;
      return sendProblem(reply, { status: 405, code: "method-not-allowed", detail });
    }
    const detail = `nothing answers ${request.method} ${shown}; /docs lists what does`;
    return sendProblem(reply, { status: 404, code: "not-found", detail });
  };
}
