/**
 * Caches response bytes for refused requests: those of one rule differ only in the wait, which ends the body as a number of milliseconds.
 * Under attack nearly all responses are refusals, so the last bytes of a rule are reused with that number patched.
 * In: a decision. Out: the same bytes as `respond` plus `encodeResponse`, or undefined if the cached ones do not fit.
 */
import type { Decision } from "sluice";
import { NEVER_MS } from "sluice";
import { Decision as Made } from "sluice/internal";
import type { PlacedLimit } from "./limit-tree.js";
import type { AnswerOptions } from "./respond.js";
import type { Answered } from "./spelled-passes.js";

type Plan = NonNullable<ReturnType<typeof Made.onlyPlanOf>>;

interface Learned {
  readonly placed: PlacedLimit | undefined;
  /** Kept, because `adapt` puts another policy into the same plan. */
  readonly policy: Plan["policy"];
  readonly remaining: number | undefined;
  readonly reason: string | undefined;
  /** The wait in whole seconds, as used elsewhere in the response, and the number of digits of its milliseconds. */
  readonly seconds: number;
  readonly digits: number;
  readonly bytes: Buffer;
}

const ZERO = 0x30;

export class SpelledRefusals {
  readonly #isOn: boolean;
  readonly #learned = new WeakMap<Plan, Learned>();

  constructor({ body, dynamicMetadata, shadowMode }: AnswerOptions) {
    this.#isOn = body && !dynamicMetadata && !shadowMode;
  }

  spell(decision: Decision, placed: PlacedLimit | undefined): Buffer | undefined {
    const plan = this.#planOf(decision);
    const learned = plan && this.#learned.get(plan);
    if (learned === undefined || learned.policy !== plan!.policy || learned.placed !== placed) return undefined;
    if (!isLike(learned, decision)) return undefined;
    const bytes = Buffer.allocUnsafe(learned.bytes.length);
    bytes.set(learned.bytes);
    // The digits end right before the closing brace of the body, which also ends the response.
    let rest = decision.retryAfterMs;
    for (let i = bytes.length - 2; i > bytes.length - 2 - learned.digits; i--) {
      bytes[i] = ZERO + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    return bytes;
  }

  learn(decision: Decision, { response: { rawBody }, bytes, placed }: Answered): void {
    const plan = this.#planOf(decision);
    const { retryAfterMs, remaining, reason } = decision;
    if (plan === undefined || rawBody === undefined || !rawBody.toString().endsWith(`:${retryAfterMs}}`)) return;
    const seconds = Math.ceil(retryAfterMs / 1000);
    const digits = digitsOf(retryAfterMs);
    this.#learned.set(plan, { placed, policy: plan.policy, remaining, reason, seconds, digits, bytes });
  }

  #planOf(decision: Decision): Plan | undefined {
    if (!this.#isOn || decision.degraded !== undefined || decision.lease !== undefined) return undefined;
    if (!(decision.retryAfterMs > 0) || decision.retryAfterMs === NEVER_MS) return undefined;
    const plan = Made.onlyPlanOf(decision);
    return plan?.mode === "enforce" && Number.isInteger(decision.retryAfterMs) ? plan : undefined;
  }
}

function isLike({ remaining, reason, seconds, digits }: Learned, decision: Decision): boolean {
  return (
    remaining === decision.remaining &&
    reason === decision.reason &&
    seconds === Math.ceil(decision.retryAfterMs / 1000) &&
    digits === digitsOf(decision.retryAfterMs)
  );
}

function digitsOf(value: number): number {
  let digits = 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) digits++;
  return digits;
}
