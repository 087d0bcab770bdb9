/**
 * Caches response bytes for requests that passed a single rule: all but two numbers are the same for every key of the rule.
 * In: a decision. Out: the same bytes as `respond` plus `encodeResponse`, or undefined if it does not qualify or was not learned yet.
 */
import type { Decision } from "sluice";
import { Decision as Made } from "sluice/internal";
import { encodePass, type PassParts, passParts } from "./encode-response.js";
import type { PlacedLimit } from "./limit-tree.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";
import type { AnswerOptions } from "./respond.js";

type Plan = NonNullable<ReturnType<typeof Made.onlyPlanOf>>;

/** A response, as a message and as bytes. */
export interface Answered {
  readonly response: RateLimitResponse;
  readonly bytes: Buffer;
  /** The limit from Envoy's files, which may have its own name; absent for one of Sluice's own rules. */
  readonly placed: PlacedLimit | undefined;
}

interface Learned {
  readonly placed: PlacedLimit | undefined;
  /** Kept, because `adapt` puts another policy into the same plan. */
  readonly policy: Plan["policy"];
  readonly parts: PassParts;
}

const MOST_UINT32 = 0xffff_ffff;

export class SpelledPasses {
  readonly #isOn: boolean;
  /** By the rule's plan, which includes its numbers: a changed rule has a new plan. */
  readonly #learned = new WeakMap<Plan, Learned>();

  constructor({ fields, dynamicMetadata }: AnswerOptions) {
    this.#isOn = fields === "standard" && !dynamicMetadata;
  }

  spell(decision: Decision, placed: PlacedLimit | undefined): Buffer | undefined {
    const plan = this.#planOf(decision);
    const learned = plan && this.#learned.get(plan);
    if (learned === undefined || learned.policy !== plan!.policy || learned.placed !== placed) return undefined;
    return spelled(decision, learned.parts);
  }

  learn(decision: Decision, { response, bytes, placed }: Answered): void {
    const plan = this.#planOf(decision);
    const [status] = response.statuses;
    const [policyField, rateLimit] = response.responseHeadersToAdd;
    if (plan === undefined || status?.currentLimit === undefined || rateLimit?.key !== "RateLimit") return;
    const name = /^"([^"]*)";r=/.exec(rateLimit.value)?.[1] ?? plan.rule;
    const parts = passParts({ limit: status.currentLimit, policyField: policyField!, rule: name });
    // Learned only if it reproduces the actual bytes: a response with anything else in it does not qualify.
    if (parts === undefined || !spelled(decision, parts).equals(bytes)) return;
    this.#learned.set(plan, { placed, policy: plan.policy, parts });
  }

  /** Undefined if the response contains more, or numbers that are not the decision's. */
  #planOf(decision: Decision): Plan | undefined {
    if (!this.#isOn || decision.degraded !== undefined || decision.lease !== undefined) return undefined;
    const plan = Made.onlyPlanOf(decision);
    if (plan === undefined || plan.mode !== "enforce" || plan.policy.stored === "concurrency") return undefined;
    // Without a wait, the reset time comes from the clock.
    const isPlain = decision.resetAfterMs > 0 && decision.limit! > 0 && decision.remaining! <= MOST_UINT32;
    return isPlain ? plan : undefined;
  }
}

function spelled({ remaining = 0, resetAfterMs }: Decision, parts: PassParts): Buffer {
  return encodePass(parts, { remaining, resetSeconds: Math.ceil(resetAfterMs / 1000) });
}
