/**
 * The fast path of `ShouldRateLimit`: a request that only Sluice's own rules can meet. Without Envoy's files there is nothing to look up,
 * give back, replace or count apart, so it is decided like any check, and at once where the store answers at once: no promise, no lists.
 * `should-rate-limit.ts` tells the whole story and decides every other request; a test holds both to the same bytes.
 *
 * In: a request as it was read. Out: a decision, and the bytes of its response.
 */
import type { Attributes, CheckOptions, CheckResult, Decision, Limiter, RuleBook } from "sluice";
import { Decision as Made, type MaybePromise } from "sluice/internal";
import { PlainRequest } from "./decode-request.js";
import { encodeResponse } from "./encode-response.js";
import { COUNTER_ATTRIBUTE, LIMIT_ATTRIBUTE } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import { codes, hasLimit, type RateLimitRequest, type RateLimitResponse } from "./rate-limit-messages.js";
import { type AnswerOptions, OwnRules, respond } from "./respond.js";
import { SpelledPasses } from "./spelled-passes.js";
import { SpelledRefusals } from "./spelled-refusals.js";

interface PlainOptions {
  readonly limiter: Limiter;
  readonly answers: AnswerOptions;
  /** Rules for Envoy's traffic instead of those in force, if there are any. */
  readonly ownBook: () => RuleBook | undefined;
  /** Adds what a response holds for its request. */
  readonly finish: (response: RateLimitResponse, decision: Decision) => RateLimitResponse;
}

/** A response as it is sent. */
export class SpelledResponse {
  readonly bytes: Buffer;
  readonly allowed: boolean;
  /** Whether any descriptor met a limit. */
  readonly matched: boolean;

  constructor(bytes: Buffer, allowed: boolean, matched: boolean) {
    this.bytes = bytes;
    this.allowed = allowed;
    this.matched = matched;
  }
}

/** What most requests ask: one unit, now or not at all. */
const ONE_UNIT: CheckOptions = { cost: 1, wait: false };

export class PlainRequests {
  readonly #options: PlainOptions;
  readonly #ownRules: OwnRules;
  readonly #passes: SpelledPasses;
  readonly #refusals: SpelledRefusals;

  constructor(options: PlainOptions) {
    this.#options = options;
    this.#ownRules = new OwnRules(options.limiter);
    this.#passes = new SpelledPasses(options.answers);
    this.#refusals = new SpelledRefusals(options.answers);
  }

  /** Undefined: the request is not a plain one. Malformed values are thrown, or reject. */
  decide(request: RateLimitRequest): MaybePromise<Decision> | undefined {
    if (!(request instanceof PlainRequest) || this.#options.ownBook() !== undefined) return undefined;
    const attributes = attributesOf(request);
    if (attributes === undefined) return undefined;
    const { hitsAddend } = request;
    const options = hitsAddend <= 1 ? ONE_UNIT : { cost: hitsAddend, wait: false };
    return this.#options.limiter.checkNow(attributes, options);
  }

  answer(request: RateLimitRequest, decision: Decision): SpelledResponse | RateLimitResponse {
    const { allowed } = decision;
    const isAlone = request.descriptors.length === 1;
    const known = isAlone ? (allowed ? this.#passes.spell(decision) : this.#refusals.spell(decision)) : undefined;
    if (known !== undefined) return new SpelledResponse(known, allowed, true);
    const response = this.#respond(request, decision);
    if (response.dynamicMetadata !== undefined) return this.#options.finish(response, decision);
    const bytes = encodeResponse(response);
    if (isAlone && allowed) this.#passes.learn(decision, response);
    if (isAlone && !allowed) this.#refusals.learn(decision, response, bytes);
    return new SpelledResponse(bytes, response.overallCode === codes.ok, hasLimit(response));
  }

  #respond(request: RateLimitRequest, decision: Decision): RateLimitResponse {
    const { answers } = this.#options;
    const asked = request.descriptors.map((descriptor) => ({
      descriptor,
      hits: 1,
      limit: undefined,
      check: undefined,
    }));
    const own = this.#ownRules.assign(countedChecks(decision), asked, request.domain);
    return respond({ request, asked, own, decision, quotaUsedUp: false, answers });
  }
}

/** As `checkAll` tells them: rules that shed load have a status only where they refuse. */
function countedChecks(decision: Decision): readonly CheckResult[] {
  const { checks, reason } = decision;
  return reason === "load" ? checks : checks.slice(0, Made.originOf(decision).checks.length);
}

/** As `own-attributes.ts` reads them. Undefined where an entry means more than its value, or the request is not whole. */
function attributesOf({ domain, descriptors }: PlainRequest): Attributes | undefined {
  if (domain === "" || descriptors.length === 0 || descriptors.length > MOST_DESCRIPTORS) return undefined;
  const attributes: Record<string, string> = { domain };
  for (let i = 0; i < descriptors.length; i++) {
    const { entries } = descriptors[i]!;
    if (entries.length > MOST_ENTRIES) return undefined;
    for (let j = 0; j < entries.length; j++) {
      const { key, value } = entries[j]!;
      if (key === LIMIT_ATTRIBUTE || key === COUNTER_ATTRIBUTE || key === LEASE_ENTRY || key === "__proto__")
        return undefined;
      if (!Object.hasOwn(attributes, key)) attributes[key] = value;
    }
  }
  return attributes;
}
