/**
 * Responses to requests that passed one rule: all but two numbers is the same for every key of the rule, and kept as bytes.
 * In: a decision. Out: the bytes that `respond` and `encodeResponse` would make, or undefined where it is not of that kind, or was not learned.
 */
import type { Decision } from "sluice";
import { Decision as Made } from "sluice/internal";
import { encodePass, type PassParts, passParts } from "./encode-response.js";
import type { PlacedLimit } from "./limit-tree.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";
import type { AnswerOptions } from "./respond.js";

type Plan = NonNullable<ReturnType<typeof Made.onlyPlanOf>>;

/** What was answered, as a message and as bytes. */
export interface Answered {
  readonly response: RateLimitResponse;
  readonly bytes: Buffer;
  /** The limit of Envoy's files, which may have a name of its own; absent for a rule of Sluice's. */
  readonly placed: PlacedLimit | undefined;
}

interface Learned {
  readonly placed: PlacedLimit | undefined;
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
    // Learned only if it would have been the answer: one that has anything else to it is not of this kind.
    if (parts === undefined || !spelled(decision, parts).equals(bytes)) return;
    this.#learned.set(plan, { placed, policy: plan.policy, parts });
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

function spelled({ remaining = 0, resetAfterMs }: Decision, parts: PassParts): Buffer {
  return encodePass(parts, { remaining, resetSeconds: Math.ceil(resetAfterMs / 1000) });
}
