/**
 * Errors of the admin API as `application/problem+json` (RFC 9457): a stable `code`, what happened, and a remedy.
 * An unexpected error is logged whole and told as `internal`. `docs/administration.md` lists every code, held equal by a test.
 */
import { STATUS_CODES } from "node:http";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type Mistake, SluiceError } from "sluice";
import type { ConfigurationLog } from "../configuration/configuration.js";
import { ConfigurationError } from "../configuration/configuration-error.js";

export const administrationErrorKinds = {
  unauthorized: { status: 401, remedy: "Send `Authorization: Bearer` and a token that this server knows." },
  forbidden: { status: 403, remedy: "Use a token of the role that the message names." },
  "cross-origin": {
    status: 403,
    remedy: "With the session cookie, call from the dashboard's own pages; else send a token.",
  },
  "not-found": { status: 404, remedy: "/docs lists what there is." },
  "method-not-allowed": { status: 405, remedy: "Use a method that the `Allow` header names." },
  "unknown-token": { status: 404, remedy: "Use a name that GET /admin/v1/tokens lists." },
  "token-exists": { status: 409, remedy: "Choose another name, or delete that token first." },
  "body-too-large": { status: 413, remedy: "Send a smaller document; see MAX_DOCUMENT_BYTES in the docs." },
  "unsupported-media-type": { status: 415, remedy: "Send JSON with `Content-Type: application/json`." },
  "too-many-attempts": { status: 429, remedy: "Wait as long as `Retry-After` says." },
  "monitoring-off": { status: 404, remedy: "Start the service with --monitoring on." },
  "too-many-streams": { status: 503, remedy: "Close other dashboards, or ask another instance." },
  internal: { status: 500, remedy: "Sluice failed; its log says why." },
} as const;

export class AdministrationError extends Error {
  readonly code: keyof typeof administrationErrorKinds;
  readonly status: number;
  readonly remedy: string;

  constructor(code: keyof typeof administrationErrorKinds, message: string) {
    super(message);
    this.code = code;
    this.status = administrationErrorKinds[code].status;
    this.remedy = administrationErrorKinds[code].remedy;
  }
}

interface Problem {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
  readonly mistakes?: readonly Mistake[];
  readonly details?: Readonly<Record<string, unknown>>;
}

const frameworkCodes: Readonly<Record<string, () => Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () => new AdministrationError("body-too-large", "body: larger than is accepted here"),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () =>
    new AdministrationError("unsupported-media-type", "content-type: expected application/json"),
};

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const { status, code, message, remedy, mistakes = [], details = {} } = problem;
  const body = {
    type: "about:blank",
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail: message,
    code,
    remedy,
    ...(mistakes.length > 0 && { mistakes }),
    ...details,
  };
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="sluice"');
  return reply.code(status).type("application/problem+json").serializer(JSON.stringify).send(body);
}

export function errorHandler(log: ConfigurationLog) {
  return (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const known = problemOf(error);
    if (known !== undefined) return sendProblem(reply, known);
    const path = request.routeOptions.url;
    log.error("an admin request failed", { method: request.method, path, error: String(error), stack: stackOf(error) });
    return sendProblem(reply, new AdministrationError("internal", "Sluice failed; its log says why."));
  };
}

/** 404, or 405 where the path answers other methods. */
export function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = request.url.split("?", 1)[0]!.slice(0, 200);
  const methods = request.server.methodsOf?.(path) ?? [];
  if (methods.length > 0) {
    reply.header("allow", methods.join(", "));
    const message = `${path} answers ${methods.join(", ")}, not ${request.method}`;
    return sendProblem(reply, new AdministrationError("method-not-allowed", message));
  }
  return sendProblem(reply, new AdministrationError("not-found", `nothing answers ${request.method} ${path}`));
}

function problemOf(error: unknown): Problem | undefined {
  const isOurs =
    error instanceof SluiceError || error instanceof ConfigurationError || error instanceof AdministrationError;
  if (isOurs) return error;
  const { code = "", statusCode = 500, message = "not valid" } = error as Partial<FastifyError>;
  const framework = Object.hasOwn(frameworkCodes, code) ? frameworkCodes[code]!() : undefined;
  if (framework !== undefined || statusCode < 400 || statusCode >= 500) return framework;
  return new SluiceError("invalid-request", message);
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}
