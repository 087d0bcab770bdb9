/**
 * A decision as HTTP: status, fields and body, shared by middleware, forward-auth and the proxy. In: a decision. Out: an answer that any
 * server can send. Pure: nothing is sent here.
 */
import type { Decision } from "../limiter/decision.js";
import { PROBLEM_CONTENT_TYPE, type Problem, problemOf, refusalStatus } from "./problem.js";
import {
  type Field,
  type HeadersOption,
  type LegacyReset,
  rateLimitFields,
  retryAfterSeconds,
} from "./rate-limit-fields.js";

export interface AnswerOptions {
  /** Which rate limit fields to send. Default `draft-11`. `Retry-After` belongs to a refusal and is always sent. */
  headers?: HeadersOption;
  /** The unit of `X-RateLimit-Reset`. Default `epoch`. */
  legacyReset?: LegacyReset;
}

export interface Answer {
  /** 200 if the request passed; otherwise 429, or 503 for overload and for a store outage under `deny`. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Only for a refusal. */
  readonly body?: Problem;
}

export function answerOf(decision: Decision, options: AnswerOptions = {}): Answer {
  const fields = rateLimitFields(options.headers, options.legacyReset)([decision]);
  if (decision.allowed) return { status: 200, headers: Object.fromEntries(fields) };
  return {
    status: refusalStatus(decision),
    headers: Object.fromEntries([...fields, ...retryFields(decision), ["Content-Type", PROBLEM_CONTENT_TYPE]]),
    body: problemOf(decision),
  };
}

/** `Retry-After`, if waiting helps. */
export function retryFields(decision: Decision): Field[] {
  const seconds = retryAfterSeconds(decision);
  return seconds === undefined ? [] : [["Retry-After", String(seconds)]];
}
