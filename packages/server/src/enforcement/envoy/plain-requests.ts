/**
 * The fast path of `ShouldRateLimit`, for two kinds of requests: those that only Sluice's own rules can meet, since there are no files of
 * Envoy's, and those whose descriptors meet ordinary limits of the files, and no other rule. There is nothing to give back, replace or
 * count apart, so each is decided like any check, and at once where the store answers at once: no promise, and for one descriptor no lists.
 * `should-rate-limit.ts` tells the whole story and decides every other request; a test holds both to the same bytes.
 *
 * In: a request as it was read. Out: a decision, and the bytes of its response.
 */
import type { Attributes, CheckOptions, CheckPart, CheckResult, Decision, Limiter, Rule, RuleBook } from "sluice";
import { checkAllNow, checkLastPart, Decision as Made, type MaybePromise } from "sluice/internal";
import { PlainRequest } from "./decode-request.js";
import { encodeResponse } from "./encode-response.js";
import { COUNTER_ATTRIBUTE, isEnvoyRule, LIMIT_ATTRIBUTE, ruleIdOf } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";
import type { Found, LimitTree, PlacedLimit } from "./limit-tree.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import { codes, hasLimit, type RateLimitRequest, type RateLimitResponse } from "./rate-limit-messages.js";
import { type AnswerOptions, OwnRules, respond } from "./respond.js";
import { SpelledPasses } from "./spelled-passes.js";
import { SpelledRefusals } from "./spelled-refusals.js";

interface PlainOptions {
  readonly limiter: Limiter;
  readonly answers: AnswerOptions;
  /** Absent without Envoy's files. */
  readonly tree: () => LimitTree | undefined;
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

/** A request that takes this way. */
interface Plain {
  /** As Sluice's own rules, and listeners, see it. */
  readonly attributes: Attributes;
  /** The limits of the files, by descriptor, of which one at least meets one; absent without files. */
  readonly found: readonly (Found | undefined)[] | undefined;
  /** Of each descriptor's limit; filled by the decision. */
  checks: readonly (CheckResult | undefined)[];
}

/** What most requests ask: one unit, now or not at all. */
const ONE_UNIT: CheckOptions = { cost: 1, wait: false };
const NO_WAIT = { wait: false };
const NO_CHECKS: readonly undefined[] = [];

export class PlainRequests {
  readonly #options: PlainOptions;
  readonly #ownRules: OwnRules;
  readonly #passes: SpelledPasses;
  readonly #refusals: SpelledRefusals;
  readonly #hasOnlyFiles: () => boolean;

  constructor(options: PlainOptions) {
    this.#options = options;
    this.#ownRules = new OwnRules(options.limiter);
    this.#passes = new SpelledPasses(options.answers);
    this.#refusals = new SpelledRefusals(options.answers);
    this.#hasOnlyFiles = onlyEnvoyRules(options.limiter);
  }

  /** Undefined: the request is not a plain one. */
  plainOf(request: RateLimitRequest): Plain | undefined {
    if (!(request instanceof PlainRequest) || this.#options.ownBook() !== undefined) return undefined;
    const tree = this.#options.tree();
    if (tree === undefined) {
      const attributes = attributesOf(request);
      return attributes && { attributes, found: undefined, checks: NO_CHECKS };
    }
    if (!this.#hasOnlyFiles()) return undefined;
    const attributes = attributesOf(request);
    if (attributes === undefined) return undefined;
    const found = this.#ordinaryLimits(request, tree);
    return found && { attributes, found, checks: NO_CHECKS };
  }

  /** By descriptor; undefined if none meets a limit, or any meets one that is not ordinary. */
  #ordinaryLimits({ domain, descriptors }: PlainRequest, tree: LimitTree): (Found | undefined)[] | undefined {
    const { answers } = this.#options;
    const limits: (Found | undefined)[] = [];
    let isAny = false;
    for (let i = 0; i < descriptors.length; i++) {
      const found = tree.find(domain, descriptors[i]!.entries);
      if (found !== undefined) {
        if (!isOrdinary(found.placed, answers)) return undefined;
        if (descriptors.length > 1 && found.placed.limit.replaces.length > 0) return undefined;
        isAny = true;
      }
      limits.push(found);
    }
    return isAny ? limits : undefined;
  }

  /** Malformed values are thrown, or reject. */
  decide({ hitsAddend }: RateLimitRequest, plain: Plain): MaybePromise<Decision> {
    const { limiter } = this.#options;
    const { attributes, found } = plain;
    if (found === undefined)
      return limiter.checkNow(attributes, hitsAddend <= 1 ? ONE_UNIT : { cost: hitsAddend, wait: false });
    const cost = Math.max(1, hitsAddend);
    const parts: CheckPart[] = [{ attributes, cost }];
    for (const one of found) if (one !== undefined) parts.push(partOf(one, cost));
    if (found.length === 1) return checkLastPart(limiter, parts, NO_WAIT);
    const made = checkAllNow(limiter, parts, NO_WAIT);
    const placed = ({ decision, parts: results }: Awaited<typeof made>): Decision => {
      let at = 0;
      plain.checks = found.map((one) => (one === undefined ? undefined : results[++at]![0]));
      return decision;
    };
    return made instanceof Promise ? made.then(placed) : placed(made);
  }

  answer(request: RateLimitRequest, decision: Decision, plain: Plain): SpelledResponse | RateLimitResponse {
    const { allowed } = decision;
    const isAlone = request.descriptors.length === 1;
    const placed = plain.found?.[0]?.placed;
    const spelled = allowed ? this.#passes : this.#refusals;
    const known = isAlone ? spelled.spell(decision, placed) : undefined;
    if (known !== undefined) return new SpelledResponse(known, allowed, true);
    const response = this.#respond(request, decision, plain);
    if (response.dynamicMetadata !== undefined) return this.#options.finish(response, decision);
    const bytes = encodeResponse(response);
    if (isAlone) spelled.learn(decision, { response, bytes, placed });
    return new SpelledResponse(bytes, response.overallCode === codes.ok, hasLimit(response));
  }

  #respond(request: RateLimitRequest, decision: Decision, { found, checks }: Plain): RateLimitResponse {
    const { answers } = this.#options;
    const isAlone = request.descriptors.length === 1;
    const asked = request.descriptors.map((descriptor, i) => ({
      descriptor,
      hits: Math.max(1, request.hitsAddend),
      limit: found?.[i] && { kind: "placed" as const, ...found[i] },
      check: found && (isAlone ? decision.checks[0] : checks[i]),
    }));
    const own =
      found === undefined ? this.#ownRules.assign(countedChecks(decision), asked, request.domain) : asked.map(() => []);
    return respond({ request, asked, own, decision, quotaUsedUp: false, answers });
  }
}

/** As the long way asks for a limit that is never counted in full. */
function partOf({ placed, counter }: Found, cost: number): CheckPart {
  const attributes = { [LIMIT_ATTRIBUTE]: ruleIdOf(placed), [COUNTER_ATTRIBUTE]: counter };
  return { attributes, cost, charge: false };
}

/** As `checkAll` tells them: rules that shed load have a status only where they refuse. */
function countedChecks(decision: Decision): readonly CheckResult[] {
  const { checks, reason } = decision;
  return reason === "load" ? checks : checks.slice(0, Made.originOf(decision).checks.length);
}

/** A limit of which a status says all there is: enforced, counted, and never judged together with others. */
function isOrdinary({ limit, shadow, quota }: PlacedLimit, answers: AnswerOptions): boolean {
  if (shadow || quota || answers.allQuotas || limit.unlimited || limit.requestsPerUnit === 0) return false;
  // Counted in full, also where it is refused.
  if (limit.countRefused ?? answers.countsRefused) return false;
  return limit.extra.algorithm !== "concurrency";
}

/** Whether every rule in force is of Envoy's files: then a request meets the limits of its descriptors, and nothing else. */
function onlyEnvoyRules(limiter: Limiter): () => boolean {
  let seen: readonly Rule[] | undefined;
  let isOnly = false;
  return () => {
    if (seen !== limiter.rules) {
      seen = limiter.rules;
      isOnly = seen.every(isEnvoyRule);
    }
    return isOnly;
  };
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
