/**
 * A refusal as fields and the text of its body. Refusals of one rule mostly differ only in the wait, and under attack they are nearly all
 * that is sent, so the last text of each rule is cached. Pure apart from that cache.
 */
import type { CheckPlan } from "../check.js";
import { Decision } from "../limiter/decision.js";
import { answerOf } from "./answer.js";
import type { Field } from "./rate-limit-fields.js";
import { retryAfterSeconds } from "./rate-limit-fields.js";

export interface RefusalText {
  readonly fields: readonly Field[];
  /** application/problem+json. */
  readonly body: string;
}

interface Spelled {
  readonly remaining: number | undefined;
  readonly reason: string | undefined;
  readonly degraded: string | undefined;
  /** The value of `Retry-After`. */
  readonly seconds: number | undefined;
  readonly fields: readonly Field[];
  /** The body up to its last number, the wait in ms. */
  readonly head: string;
}

/** By plan: a changed rule has another. */
const lastSpelled = new WeakMap<CheckPlan, Spelled>();

export function refusalText(decision: Decision): RefusalText {
  const { checks } = Decision.originOf(decision);
  const plan = checks.length === 1 ? checks[0]!.plan : undefined;
  if (plan === undefined) return spell(decision);
  let spelled = lastSpelled.get(plan);
  if (spelled === undefined || !isLike(spelled, decision)) {
    const { fields, body } = spell(decision);
    const { remaining, reason, degraded } = decision;
    const seconds = retryAfterSeconds(decision);
    const head = body.slice(0, body.lastIndexOf(":") + 1);
    spelled = { remaining, reason, degraded, seconds, fields, head };
    lastSpelled.set(plan, spelled);
  }
  return { fields: spelled.fields, body: `${spelled.head}${decision.retryAfterMs}}` };
}

function isLike(spelled: Spelled, decision: Decision): boolean {
  return (
    spelled.reason === decision.reason &&
    spelled.remaining === decision.remaining &&
    spelled.degraded === decision.degraded &&
    spelled.seconds === retryAfterSeconds(decision)
  );
}

function spell(decision: Decision): RefusalText {
  const { headers, body } = answerOf(decision);
  return { fields: Object.entries(headers), body: JSON.stringify(body) };
}
