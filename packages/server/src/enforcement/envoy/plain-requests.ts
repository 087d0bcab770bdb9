/**
 * The fast path of `ShouldRateLimit`, for two kinds of requests: those that can match only Sluice's own rules, because no Envoy files are
 * loaded, and those whose descriptors match ordinary limits of the files, and no other rule. They have nothing to give back, replace or
 * count separately, so each is decided like any check, synchronously if the store is: no promise, and no lists for a single descriptor.
 * `should-rate-limit.ts` is the full path and decides every other request; a test verifies that both produce the same bytes.
 *
 * In: a decoded request. Out: a decision, and the bytes of its response.
 */
import type { Attributes, CheckOptions, CheckPart, CheckResult, Decision, Limiter, Rule, RuleBook } from "sluice";
import { checkAllNow, checkLastPart, Decision as Made, type MaybePromise } from "sluice/internal";
import { PlainRequest } from "./decode-request.js";
import { encodeResponse } from "./encode-response.js";
import { COUNTER_ATTRIBUTE, isEnvoyRule, LIMIT_ATTRIBUTE, ruleIdOf } from "./envoy-rules.js";
import { LEASE_ENTRY } from "./give-back.js";
import type { Found, LimitTree, PlacedLimit } from "./limit-tree.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import { inRegion } from "./own-attributes.js";
import { codes, hasLimit, type RateLimitRequest, type RateLimitResponse } from "./rate-limit-messages.js";
import { type AnswerOptions, OwnRules, respond } from "./respond.js";
import { SpelledPasses } from "./spelled-passes.js";
import { SpelledRefusals } from "./spelled-refusals.js";

interface PlainOptions {
  readonly limiter: Limiter;
  /** Default for the attribute `region`. */
  readonly region: string | undefined;
  readonly answers: AnswerOptions;
  /** Absent without Envoy's files. */
  readonly tree: () => LimitTree | undefined;
  /** A separate rule book for Envoy traffic, if it differs from the rules in force. */
  readonly ownBook: () => RuleBook | undefined;
  /** Attaches the resources that a response holds, such as its lease. */
  readonly finish: (response: RateLimitResponse, decision: Decision) => RateLimitResponse;
}

/** An encoded response. */
export class SpelledResponse {
  readonly bytes: Buffer;
  readonly allowed: boolean;
  /** Whether any descriptor matched a limit. */
  readonly matched: boolean;

  constructor(bytes: Buffer, allowed: boolean, matched: boolean) {
    this.bytes = bytes;
    this.allowed = allowed;
    this.matched = matched;
  }
}

/** A request that qualifies for the fast path. */
interface Plain {
  /** As seen by Sluice's own rules and by listeners. */
  readonly attributes: Attributes;
  /** The files' limits by descriptor, at least one of them defined; absent without files. */
  readonly found: readonly (Found | undefined)[] | undefined;
  /** The result per descriptor's limit; filled by the decision. */
  checks: readonly (CheckResult | undefined)[];
}

/** What most requests ask for: one unit, without waiting. */
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

  /** Undefined if the request needs the full path. */
  plainOf(request: RateLimitRequest): Plain | undefined {
    if (!(request instanceof PlainRequest) || this.#options.ownBook() !== undefined) return undefined;
    const tree = this.#options.tree();
    if (tree === undefined) {
      const attributes = attributesOf(request, this.#options.region);
      return attributes && { attributes, found: undefined, checks: NO_CHECKS };
    }
    if (!this.#hasOnlyFiles()) return undefined;
    const attributes = attributesOf(request, this.#options.region);
    if (attributes === undefined) return undefined;
    const found = this.#ordinaryLimits(request, tree);
    return found && { attributes, found, checks: NO_CHECKS };
  }

  /** By descriptor; undefined if none matches a limit, or one matches a limit that is not ordinary. */
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

  /** Throws or rejects for malformed values. */
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

/** The same as the full path asks for a limit that does not count refused hits. */
function partOf({ placed, counter }: Found, cost: number): CheckPart {
  const attributes = { [LIMIT_ATTRIBUTE]: ruleIdOf(placed), [COUNTER_ATTRIBUTE]: counter };
  return { attributes, cost, charge: false };
}

/** As `checkAll` reports them: load-shedding rules have a status only if they refuse. */
function countedChecks(decision: Decision): readonly CheckResult[] {
  const { checks, reason } = decision;
  return reason === "load" ? checks : checks.slice(0, Made.originOf(decision).checks.length);
}

/** A limit that its status describes completely: enforced, counted, and never combined with other quotas. */
function isOrdinary({ limit, shadow, quota }: PlacedLimit, answers: AnswerOptions): boolean {
  if (shadow || quota || answers.allQuotas || limit.unlimited || limit.requestsPerUnit === 0) return false;
  // Counts refused hits too.
  if (limit.countRefused ?? answers.countsRefused) return false;
  return limit.extra.algorithm !== "concurrency";
}

/** Whether every rule in force comes from Envoy's files: then a request matches only its descriptors' limits. */
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

/** The same as `own-attributes.ts`. Undefined if an entry means more than its value, or the request is incomplete. */
function attributesOf({ domain, descriptors }: PlainRequest, region: string | undefined): Attributes | undefined {
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
  return inRegion(attributes, region);
}
