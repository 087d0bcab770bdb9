/**
 * Refusals and errors in the vendors' formats, which their SDKs understand, and the rate limit headers their users know.
 * Pure. The SDKs retry 429 and 5xx by themselves: after `retry-after-ms`, else after `Retry-After`, unless `x-should-retry` is `false`.
 */
import { type CheckResult, type Decision, NEVER_MS, type Rule } from "sluice";
import { answerOf, type HeadersOption } from "sluice/http";
import type { Problem } from "../../../http/problem.js";
import type { Vendor } from "./vendors.js";

export type FieldsForm = "off" | "openai" | "anthropic";

export interface JsonAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

interface AnswerShape {
  readonly vendor: Vendor;
  readonly headers: HeadersOption;
  readonly form: FieldsForm;
  readonly ruleOf: (id: string) => Rule | undefined;
  readonly nowMs: () => number;
}

/** An SDK sleeps for as long as it is told, even an hour; beyond this, an immediate error serves the user better. */
const LONGEST_RETRY_MS = 60_000;

/** The answer for a decision: headers for a response that passes, a complete response for a refusal. */
export function vendorAnswer(decision: Decision, shape: AnswerShape): JsonAnswer {
  const { status, headers, body } = answerOf(decision, { headers: shape.headers });
  const fields = { ...headers, ...vendorFields(decision, shape) };
  if (body === undefined) return { status, headers: fields };
  const { retryAfterMs } = decision;
  const retryFields: Record<string, string> =
    retryAfterMs > LONGEST_RETRY_MS || retryAfterMs === NEVER_MS
      ? { "x-should-retry": "false" }
      : { "retry-after-ms": String(Math.max(1, Math.ceil(retryAfterMs))) };
  return {
    status,
    headers: { ...fields, ...retryFields, "Content-Type": "application/json" },
    body: errorBody(shape.vendor, {
      status,
      message: body.detail,
      kind: unitOf(decision.rule === undefined ? undefined : shape.ruleOf(decision.rule)),
      code: status === 429 ? "rate_limit_exceeded" : "overloaded",
    }),
  };
}

/** One of the proxy's own problems, in the vendor's format. */
export function vendorError(vendor: Vendor, { status, code, detail }: Problem): object {
  const kind = status < 500 ? "invalid_request_error" : "server_error";
  return errorBody(vendor, { status, message: detail, kind, code: code.replaceAll("-", "_") });
}

interface ErrorFacts {
  readonly status: number;
  readonly message: string;
  /** OpenAI's `type`; for a limit, its unit. */
  readonly kind: string;
  readonly code: string;
}

function errorBody({ name }: Vendor, { status, message, kind, code }: ErrorFacts): object {
  if (name === "anthropic") return { type: "error", error: { type: anthropicType(status), message } };
  return { error: { message, type: status === 503 ? "server_error" : kind, param: null, code } };
}

const anthropicTypes: Readonly<Record<number, string>> = {
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
};

function anthropicType(status: number): string {
  return anthropicTypes[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/** A rule without a unit counts requests, whatever their cost. */
function unitOf(rule: Rule | undefined): string {
  return rule?.unit ?? "requests";
}

/** One set of headers per unit, from the rule with the smallest remaining share. Concurrency limits have no reset, so no headers. */
function vendorFields(decision: Decision, { form, ruleOf, nowMs }: AnswerShape): Record<string, string> {
  const fields: Record<string, string> = {};
  // A failure policy's answer has no numbers.
  if (form === "off" || (decision.degraded !== undefined && decision.degraded !== "local")) return fields;
  const tightest = new Map<string, CheckResult>();
  for (const check of decision.checks) {
    const rule = ruleOf(check.rule);
    if (check.mode !== "enforce" || rule?.algorithm === "concurrency" || rule?.algorithm === "load-shedding") continue;
    const unit = unitOf(rule);
    const known = tightest.get(unit);
    if (known === undefined || shareOf(check) < shareOf(known)) tightest.set(unit, check);
  }
  for (const [unit, check] of tightest) Object.assign(fields, spell[form](unit, check, nowMs()));
  return fields;
}

function shareOf({ remaining, limit }: CheckResult): number {
  return limit === 0 ? 0 : remaining / limit;
}

type Spell = (unit: string, check: CheckResult, nowMs: number) => Record<string, string>;

const spell: Readonly<Record<Exclude<FieldsForm, "off">, Spell>> = {
  openai: (unit, { limit, remaining, resetAfterMs }) => ({
    [`x-ratelimit-limit-${unit}`]: String(limit),
    [`x-ratelimit-remaining-${unit}`]: String(remaining),
    [`x-ratelimit-reset-${unit}`]: spanText(resetAfterMs),
  }),
  anthropic: (unit, { limit, remaining, resetAfterMs }, nowMs) => ({
    [`anthropic-ratelimit-${unit}-limit`]: String(limit),
    [`anthropic-ratelimit-${unit}-remaining`]: String(remaining),
    // Whole seconds, as Anthropic writes them; rounded up, so that no client comes back early.
    [`anthropic-ratelimit-${unit}-reset`]: `${new Date(Math.ceil((nowMs + resetAfterMs) / 1000) * 1000).toISOString().slice(0, 19)}Z`,
  }),
};

/** Formats durations as OpenAI does: `12ms`, `8.64s`, `6m0s`, `1h0m30s`. */
export function spanText(ms: number): string {
  const whole = Math.ceil(ms);
  if (whole < 1_000) return `${whole}ms`;
  if (whole < 60_000) return `${whole / 1_000}s`;
  const seconds = Math.ceil(whole / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return `${hours > 0 ? `${hours}h` : ""}${minutes % 60}m${seconds % 60}s`;
}
