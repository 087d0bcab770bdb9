/**
 * Errors as `application/problem+json` (RFC 9457), on every port: a stable `code`, what happened, and a remedy.
 * In: an error, or a code of the table (`errors.ts`). Out: the problem's members. Pure.
 * The details of an unexpected error are logged, never exposed: the client gets `internal`.
 */
import { STATUS_CODES } from "node:http";
import type { FastifyError } from "fastify";
import { type Mistake, SluiceError } from "sluice";
import { type ErrorCode, errorKinds, ServiceError } from "../errors.js";

export const PROBLEM_TYPE = "application/problem+json";

export interface Problem {
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly remedy: string;
  /** All mistakes of a rule document. */
  readonly mistakes?: readonly Mistake[];
  /** Extension members of the body. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export function problem(code: ErrorCode, detail: string): Problem {
  const { status, remedy } = errorKinds[code];
  return { status, code, detail, remedy };
}

export const internalProblem: Problem = problem("internal", "Sluice failed; its log has the cause.");

/** Fastify errors that a client can cause, reworded. Its other 4xx errors become `invalid-request` with Fastify's message. */
const frameworkProblems: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: problem("invalid-request", "body: its length is not what Content-Length says"),
};

/** Undefined if the error was not caused by the client. */
export function problemOf(error: unknown): Problem | undefined {
  if (error instanceof ServiceError || error instanceof SluiceError) {
    const { status, code, message: detail, remedy, mistakes } = error;
    const details = error instanceof ServiceError ? error.details : {};
    return { status, code, detail, remedy, mistakes, details };
  }
  const { code = "", validation, statusCode = 500, message = "not valid" } = error as Partial<FastifyError>;
  if (Object.hasOwn(frameworkProblems, code)) return frameworkProblems[code]!;
  const isClients = validation !== undefined || (statusCode >= 400 && statusCode < 500);
  return isClients ? problem("invalid-request", message) : undefined;
}

export function problemBody({ status, code, detail, remedy, mistakes = [], details }: Problem): object {
  return {
    type: "about:blank",
    title: STATUS_CODES[status] ?? "Error",
    status,
    detail,
    code,
    remedy,
    ...(mistakes.length > 0 && { mistakes }),
    ...details,
  };
}
