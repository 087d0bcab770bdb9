/**
 * Responses to requests that passed one rule: all but two numbers is the same for every key of the rule, and kept as bytes.
 * In: a decision. Out: the bytes that `respond` and `encodeResponse` would make, or undefined where it is not of that kind, or was not learned.
 */
import type { Decision } from "sluice";
import { Decision as Made } from "sluice/internal";
import { encodePass, type PassParts, passParts } from "./encode-response.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";
import type { AnswerOptions } from "./respond.js";

type Plan = NonNullable<ReturnType<typeof Made.onlyPlanOf>>;

interface Learned {
  /** `adapt` puts another policy into the same plan. */
  readonly policy: Plan["policy"];
  readonly parts: PassParts;
}

const MOST_UINT32 = 0xffff_ffff;

export class SpelledPasses {
  readonly #isOn: boolean;
  /** By the rule's plan, with its numbers. A rule that changes has another. */
  readonly #learned = new WeakMap<Plan, Learned>();

  constructor({ fields, dynamicMetadata }: AnswerOptions) {
    this.#isOn = fields === "standard" && !dynamicMetadata;
  }

  spell(decision: Decision): Buffer | undefined {
    const plan = this.#planOf(decision);
    const learned = plan && this.#learned.get(plan);
    if (learned === undefined || learned.policy !== plan!.policy) return undefined;
    const { remaining = 0, resetAfterMs } = decision;
    return encodePass(learned.parts, { remaining, resetSeconds: Math.ceil(resetAfterMs / 1000) });
  }

  learn(decision: Decision, { statuses, responseHeadersToAdd }: RateLimitResponse): void {
    const plan = this.#planOf(decision);
    const [status] = statuses;
    const [policyField, rateLimit] = responseHeadersToAdd;
    if (plan === undefined || status?.currentLimit === undefined || rateLimit?.key !== "RateLimit") return;
    const parts = passParts({ limit: status.currentLimit, policyField: policyField!, rule: plan.rule });
    if (parts !== undefined) this.#learned.set(plan, { policy: plan.policy, parts });
  }

  /** Undefined where the response has more to it, or its numbers are not those of the decision. */
  #planOf(decision: Decision): Plan | undefined {
    if (!this.#isOn || decision.degraded !== undefined || decision.lease !== undefined) return undefined;
    const plan = Made.onlyPlanOf(decision);
    if (plan === undefined || plan.mode !== "enforce" || plan.policy.stored === "concurrency") return undefined;
    // Without a wait, a window's end is told from the clock.
    const isPlain = decision.resetAfterMs > 0 && decision.limit! > 0 && decision.remaining! <= MOST_UINT32;
    return isPlain ? plan : undefined;
  }
}
