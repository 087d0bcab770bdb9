/**
 * The body of a refusal: application/problem+json (RFC 9457) with the problem types of the RateLimit draft. Pure.
 */

import { Decision } from "../limiter/decision.js";
import { formatDuration } from "../rules/duration.js";
import { retryAfterSeconds, windowMsOf } from "./rate-limit-fields.js";

export const PROBLEM_CONTENT_TYPE = "application/problem+json";

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly "violated-policies": readonly string[];
  /** `NEVER_MS` if no wait helps. */
  readonly retryAfterMs: number;
}

const kinds = {
  quota: {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Request cannot be satisfied as assigned quota has been exceeded",
    status: 429,
  },
  // Our own outage or overload is not the client's fault: 429 would make well-behaved clients slow down permanently.
  capacity: {
    type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Request cannot be satisfied due to temporary server capacity constraints",
    status: 503,
  },
} as const;

export function refusalStatus(decision: Decision): number {
  return kindOf(decision).status;
}

export function problemOf(decision: Decision): Problem {
  return {
    ...kindOf(decision),
    detail: detailOf(decision),
    "violated-policies": decision.violated,
    retryAfterMs: decision.retryAfterMs,
  };
}

function kindOf(decision: Decision): (typeof kinds)[keyof typeof kinds] {
  return decision.reason === "store-unavailable" || decision.reason === "load" ? kinds.capacity : kinds.quota;
}

function detailOf(decision: Decision): string {
  const seconds = retryAfterSeconds(decision);
  const again = seconds === undefined ? "No wait helps." : `Try again in ${seconds} s.`;
  const { rule, limit } = decision;
  switch (decision.reason) {
    case "min-interval":
      return `Requests under "${rule}" follow each other too closely. ${again}`;
    case "concurrency":
      return `All ${limit} places of "${rule}" are taken. ${again}`;
    case "load":
      return `The server is shedding load under "${rule}". ${again}`;
    case "cost-exceeds-limit":
      return `The request costs more than "${rule}" ever allows at once. ${again}`;
    case "too-many-waiting":
      return `Too many requests wait for a turn under "${rule}" already. ${again}`;
    case "blocked":
      return `The key is blocked under "${rule}". ${again}`;
    case "store-unavailable":
      return `The quota of "${rule}" cannot be checked at the moment. ${again}`;
    default:
      return `The quota of "${rule}" (${limit}${unitAndWindow(decision)}) is used up. ${again}`;
  }
}

function unitAndWindow(decision: Decision): string {
  const plan = Decision.originOf(decision).checks.find((check) => check.plan.rule === decision.rule)?.plan;
  const windowMs = plan === undefined ? undefined : windowMsOf(plan.policy);
  const unit = plan?.unit === undefined ? "" : ` ${plan.unit}`;
  return windowMs === undefined ? unit : `${unit} per ${formatDuration(Math.ceil(windowMs))}`;
}
