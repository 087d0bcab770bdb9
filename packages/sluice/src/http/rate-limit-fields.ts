/**
 * Formats the rate limit fields of a response, one format per version of the IETF draft, byte for byte. In: the decisions about a request
 * (nearly always one). Out: field names with values, in sending order. Pure. Versions never share formatting code: a draft that changes
 * must not change what clients of an older one read.
 */
import type { Policy } from "../algorithms/policy.js";
import type { CheckPlan } from "../check.js";
import { NEVER_MS } from "../decision.js";
import { SluiceError } from "../errors.js";
import { Decision } from "../limiter/decision.js";

/** `legacy`: `X-RateLimit-*`, never standardised. */
export type HeaderFormat = "draft-11" | "draft-7" | "draft-6" | "legacy";

/** Several formats may be sent together; `false` sends none. */
export type HeadersOption = HeaderFormat | readonly HeaderFormat[] | false;

/** The unit of `X-RateLimit-Reset`: seconds since 1970 (Express, GitHub) or seconds from now (Fastify, Nest). */
export type LegacyReset = "epoch" | "delta";

export type Field = readonly [name: string, value: string];

/** The state of the policy that matters most to the client. */
interface Tightest {
  readonly plan: CheckPlan;
  readonly remaining: number;
  /** For a refusal, the time until it passes again; otherwise, until it is as good as new. */
  readonly afterMs: number;
  readonly nowMs: number;
  readonly refused: boolean;
}

interface Survey {
  /** Every enforced policy that applied, in the order of the rules. */
  readonly plans: readonly CheckPlan[];
  /** The policies that refused, if any. */
  readonly violated: readonly string[];
  /** Absent if nothing was counted: no number is made up. */
  readonly tightest: Tightest | undefined;
}

const NONE: readonly string[] = [];

type Spell = (survey: Survey, legacyReset: LegacyReset) => Field[];

const formats: Readonly<Record<HeaderFormat, Spell>> = {
  "draft-11": draft11,
  "draft-7": draft7,
  "draft-6": draft6,
  legacy,
};

/** Makes the function that formats a response's fields, once per middleware. */
export function rateLimitFields(
  option: HeadersOption = "draft-11",
  legacyReset: LegacyReset = "epoch",
): (decisions: readonly Decision[]) => readonly Field[] {
  const names: readonly HeaderFormat[] = option === false ? [] : typeof option === "string" ? [option] : option;
  const spells = names.map((name) => {
    if (Object.hasOwn(formats, name)) return formats[name];
    const known = Object.keys(formats).join(", ");
    throw new SluiceError("invalid-setting", `headers: expected one of ${known}, or false, got ${String(name)}`);
  });
  const [only] = spells;
  if (only === undefined) return () => [];
  return (decisions) => {
    const survey = surveyOf(decisions);
    if (survey.plans.length === 0) return [];
    return spells.length === 1 ? only(survey, legacyReset) : spells.flatMap((spell) => spell(survey, legacyReset));
  };
}

/** Whole seconds to wait; undefined if the request passed or no wait helps. */
export function retryAfterSeconds({ allowed, retryAfterMs }: Decision): number | undefined {
  if (allowed || retryAfterMs === NEVER_MS) return undefined;
  // At least 1: "0" invites a client to come back immediately.
  return Math.max(1, secondsOf(retryAfterMs));
}

/** The time in which a policy gives its whole limit; undefined for places, which come back when requests end. */
export function windowMsOf(policy: Policy): number | undefined {
  if ("windowMs" in policy) return policy.windowMs;
  return "amount" in policy ? (policy.limit * policy.scaleMs) / policy.amount : undefined;
}

function surveyOf(decisions: readonly Decision[]): Survey {
  const plans: CheckPlan[] = [];
  let violated = NONE;
  let tightest: Tightest | undefined;
  for (const decision of decisions) {
    const { checks, nowMs } = Decision.originOf(decision);
    // A failure policy's answer does not count: what remains is unknown.
    const counted = decision.degraded === undefined || decision.degraded === "local";
    let speaks = counted;
    if (decision.violated.length > 0) violated = violated.concat(decision.violated);
    for (const { plan } of checks) {
      if (plan.mode !== "enforce") continue;
      // One decision may contain a rule twice, for two keys.
      if (!plans.includes(plan)) plans.push(plan);
      if (!speaks || plan.rule !== decision.rule) continue;
      speaks = false;
      const refused = !decision.allowed;
      const waits = refused && decision.retryAfterMs !== NEVER_MS;
      const afterMs = waits ? decision.retryAfterMs : decision.resetAfterMs;
      const state: Tightest = { plan, remaining: decision.remaining ?? 0, afterMs, nowMs, refused };
      if (tightest === undefined || isTighter(state, tightest)) tightest = state;
    }
  }
  return { plans, violated, tightest };
}

function isTighter(a: Tightest, b: Tightest): boolean {
  if (a.refused !== b.refused) return a.refused;
  return a.remaining / a.plan.policy.limit < b.remaining / b.plan.policy.limit;
}

/**
 * draft-ietf-httpapi-ratelimit-headers-08 to -11. A rule's id is a valid sf-string as it is: its alphabet has neither quotes nor
 * backslashes. `RateLimit` reports only the tightest policy, so that Retry-After is never earlier than its `t`.
 */
function draft11(survey: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(survey, policyItem)];
  const { tightest } = survey;
  if (tightest === undefined) return [policy];
  const { plan, remaining, afterMs, refused } = tightest;
  // Places come back when requests end, not with time: only a refusal has a time to report.
  const timed = refused || plan.policy.stored !== "concurrency";
  const time = timed ? `;t=${sfInteger(secondsOf(afterMs))}` : "";
  return [policy, ["RateLimit", `"${plan.rule}";r=${sfInteger(remaining)}${time}`]];
}

/** RFC 9651, section 3.3.1: at most 15 digits. A longer number, often meant as "unlimited", would make the whole field unreadable. */
const LARGEST_SF_INTEGER = 999_999_999_999_999;

function sfInteger(number: number): number {
  return Math.min(number, LARGEST_SF_INTEGER);
}

/** A policy's text never changes, and there are few: each is formatted once. */
const policyItems = new WeakMap<CheckPlan, string>();

function policyItem(plan: CheckPlan): string {
  const { policy } = plan;
  let item = policyItems.get(plan);
  if (item === undefined) {
    const quota = `"${plan.rule}";q=${sfInteger(policy.limit)}`;
    const window = windowSeconds(policy);
    item = window === undefined ? `${quota};qu="concurrent-requests"` : `${quota};w=${sfInteger(window)}`;
    policyItems.set(plan, item);
  }
  return item;
}

function draft7(survey: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(survey, namelessItem)];
  const { tightest } = survey;
  if (tightest === undefined) return [policy];
  const { limit } = tightest.plan.policy;
  const reset = secondsOf(tightest.afterMs);
  return [policy, ["RateLimit", `limit=${limit}, remaining=${tightest.remaining}, reset=${reset}`]];
}

function draft6(survey: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(survey, namelessItem)];
  const { tightest } = survey;
  if (tightest === undefined) return [policy];
  return [
    policy,
    ["RateLimit-Limit", String(tightest.plan.policy.limit)],
    ["RateLimit-Remaining", String(tightest.remaining)],
    ["RateLimit-Reset", String(secondsOf(tightest.afterMs))],
  ];
}

function namelessItem({ policy }: CheckPlan): string {
  const window = windowSeconds(policy);
  return window === undefined ? String(policy.limit) : `${policy.limit};w=${window}`;
}

function legacy({ tightest }: Survey, legacyReset: LegacyReset): Field[] {
  if (tightest === undefined) return [];
  const { plan, remaining, afterMs, nowMs } = tightest;
  return [
    ["X-RateLimit-Limit", String(plan.policy.limit)],
    ["X-RateLimit-Remaining", String(remaining)],
    ["X-RateLimit-Reset", String(secondsOf(legacyReset === "epoch" ? nowMs + afterMs : afterMs))],
  ];
}

/**
 * The most bytes of policies. A proxy has one buffer for all fields of a response (nginx: 4 KiB) and treats a response that does not fit as
 * a failure; so a long list would open a gateway that fails open when its rate limiter fails.
 */
const MOST_LIST_BYTES = 1_024;

/** If a list is too long, the policy that `RateLimit` reports comes first, then those that refused, then the others. */
function listOf({ plans, violated, tightest }: Survey, spell: (plan: CheckPlan) => string): string {
  if (plans.length === 1) return spell(plans[0]!);
  return policyList(plans.map(spell), () => {
    const refused = new Set(violated);
    const rank = (plan: CheckPlan): number => (plan === tightest?.plan ? 0 : refused.has(plan.rule) ? 1 : 2);
    return [...plans].sort((a, b) => rank(a) - rank(b)).map(spell);
  });
}

/** All items, or the most important ones: as many as there is room for, and at least one. */
export function policyList(items: readonly string[], byImportance: () => readonly string[]): string {
  const { text, isWhole } = fill(items);
  return isWhole ? text : fill(byImportance()).text;
}

function fill(items: readonly string[]): { readonly text: string; readonly isWhole: boolean } {
  let text = items[0] ?? "";
  for (let i = 1; i < items.length; i++) {
    const item = items[i]!;
    if (text.length + 2 + item.length > MOST_LIST_BYTES) return { text, isWhole: false };
    text += `, ${item}`;
  }
  return { text, isWhole: true };
}

function windowSeconds(policy: Policy): number | undefined {
  const windowMs = windowMsOf(policy);
  return windowMs === undefined ? undefined : secondsOf(windowMs);
}

/** Round up: a client that waits "1 s" for 1.4 s would come back early and be refused twice. A window is never 0 this way. */
function secondsOf(ms: number): number {
  return Math.ceil(ms / 1000);
}
