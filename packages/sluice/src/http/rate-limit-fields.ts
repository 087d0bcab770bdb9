/**
 * Spells the rate limit fields of a response, one way per version of the IETF draft, byte for byte.
 * In: the decisions a request has met (nearly always one). Out: field names with values, in the order in which they are sent.
 * Pure. Versions never share spelling code: a draft that changes must not change what clients of an older one read.
 */
import type { Policy } from "../algorithms/policy.js";
import type { CheckPlan } from "../check.js";
import { NEVER_MS } from "../decision.js";
import { SluiceError } from "../errors.js";
import { Decision } from "../limiter/decision.js";

/** `legacy`: `X-RateLimit-*`, never standardised. */
export type HeaderFormat = "draft-11" | "draft-7" | "draft-6" | "legacy";

/** Several formats may be sent side by side; `false` sends none. */
export type HeadersOption = HeaderFormat | readonly HeaderFormat[] | false;

/** The unit of `X-RateLimit-Reset`: seconds since 1970 (Express, GitHub) or seconds from now (Fastify, Nest). */
export type LegacyReset = "epoch" | "delta";

export type Field = readonly [name: string, value: string];

/** The state of the policy that matters most to the client. */
interface Tightest {
  readonly plan: CheckPlan;
  readonly remaining: number;
  /** Until it passes again, for a refusal; until it is as new, otherwise. */
  readonly afterMs: number;
  readonly nowMs: number;
  readonly refused: boolean;
}

interface Survey {
  /** Every enforced policy that applied, in the order of the rules. */
  readonly plans: readonly CheckPlan[];
  /** Absent where nothing was counted, so that no number is made up. */
  readonly tightest: Tightest | undefined;
}

type Spell = (survey: Survey, legacyReset: LegacyReset) => Field[];

const formats: Readonly<Record<HeaderFormat, Spell>> = {
  "draft-11": draft11,
  "draft-7": draft7,
  "draft-6": draft6,
  legacy,
};

/** Makes the writer of a response's fields, once per middleware. */
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

/** Whole seconds to wait; undefined where the request passed or no wait helps. */
export function retryAfterSeconds({ allowed, retryAfterMs }: Decision): number | undefined {
  if (allowed || retryAfterMs === NEVER_MS) return undefined;
  // At least 1: "0" invites a client to come back at once.
  return Math.max(1, secondsOf(retryAfterMs));
}

/** The time in which a policy gives its whole limit; undefined for places, which come back when requests end. */
export function windowMsOf(policy: Policy): number | undefined {
  if ("windowMs" in policy) return policy.windowMs;
  return "amount" in policy ? (policy.limit * policy.scaleMs) / policy.amount : undefined;
}

function surveyOf(decisions: readonly Decision[]): Survey {
  const plans: CheckPlan[] = [];
  let tightest: Tightest | undefined;
  for (const decision of decisions) {
    const { checks, nowMs } = Decision.originOf(decision);
    // A policy that answers for a store does not count: what remains is not known then.
    const counted = decision.degraded === undefined || decision.degraded === "local";
    let speaks = counted;
    for (const { plan } of checks) {
      if (plan.mode !== "enforce") continue;
      // One decision may hold a rule twice, for two keys.
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
  return { plans, tightest };
}

function isTighter(a: Tightest, b: Tightest): boolean {
  if (a.refused !== b.refused) return a.refused;
  return a.remaining / a.plan.policy.limit < b.remaining / b.plan.policy.limit;
}

/**
 * draft-ietf-httpapi-ratelimit-headers-08 to -11. A rule's id is a valid sf-string as it stands: its alphabet has neither
 * quotes nor backslashes. `RateLimit` speaks for the tightest policy alone, so that Retry-After is never earlier than its `t`.
 */
function draft11({ plans, tightest }: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(plans, policyItem)];
  if (tightest === undefined) return [policy];
  const { plan, remaining, afterMs, refused } = tightest;
  // Places come back when requests end, not with time: only a refusal has a time to tell.
  const timed = refused || plan.policy.stored !== "concurrency";
  return [policy, ["RateLimit", `"${plan.rule}";r=${remaining}${timed ? `;t=${secondsOf(afterMs)}` : ""}`]];
}

/** A policy's text never changes, and there are few: spelled once each. `adapt` puts another policy into the same plan. */
const policyItems = new WeakMap<CheckPlan, { policy: Policy; text: string }>();

function policyItem(plan: CheckPlan): string {
  const { policy } = plan;
  let item = policyItems.get(plan);
  if (item?.policy !== policy) {
    const quota = `"${plan.rule}";q=${policy.limit}`;
    const window = windowSeconds(policy);
    item = { policy, text: window === undefined ? `${quota};qu="concurrent-requests"` : `${quota};w=${window}` };
    policyItems.set(plan, item);
  }
  return item.text;
}

function draft7({ plans, tightest }: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(plans, namelessItem)];
  if (tightest === undefined) return [policy];
  const { limit } = tightest.plan.policy;
  const reset = secondsOf(tightest.afterMs);
  return [policy, ["RateLimit", `limit=${limit}, remaining=${tightest.remaining}, reset=${reset}`]];
}

function draft6({ plans, tightest }: Survey): Field[] {
  const policy: Field = ["RateLimit-Policy", listOf(plans, namelessItem)];
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

function listOf(plans: readonly CheckPlan[], spell: (plan: CheckPlan) => string): string {
  return plans.length === 1 ? spell(plans[0]!) : plans.map(spell).join(", ");
}

function windowSeconds(policy: Policy): number | undefined {
  const windowMs = windowMsOf(policy);
  return windowMs === undefined ? undefined : secondsOf(windowMs);
}

/** Round up: a client told "1 s" at 1.4 s would come back early and be refused twice. A window is never 0 this way. */
function secondsOf(ms: number): number {
  return Math.ceil(ms / 1000);
}
