/**
 * `ShouldRateLimit`: a request with descriptors in, a response with one status per descriptor out. `decide` reads as the whole story.
 *
 *   1. descriptors with a lease release its places, and ask for nothing else
 *   2. every other descriptor looks up its limit in Envoy's files, or carries one       none: it passes
 *   3. limits that others replace are dropped; unlimited ones need no counter
 *   4. the rest, plus Sluice's own rules on the request's entries, is decided as ONE request: nothing is charged unless all pass, except
 *      hits that a descriptor itself carries: those have been used already (stream done), and are counted in full
 *   5. quotas refuse only if all of them are used up; the other charges are then refunded
 *   6. each descriptor's status reports its tightest limit, with the true remaining and wait
 */
import {
  type CheckPart,
  type CheckResult,
  type Decision,
  type Limiter,
  type Rule,
  type RuleBook,
  ruleBook,
  SluiceError,
} from "sluice";
import type { MaybePromise } from "sluice/internal";
import { isStarterRule } from "../../settings/starter-rules.js";
import {
  BLOCKING_COST,
  COUNTER_ATTRIBUTE,
  LIMIT_ATTRIBUTE,
  type Override,
  overrideCounter,
  ruleIdOf,
} from "./envoy-rules.js";
import { abandon, type GivenBackOutcome, giveBackParts, leaseOf, releaseLeases } from "./give-back.js";
import type { Found, LimitTree } from "./limit-tree.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import { inRegion, ownAttributes } from "./own-attributes.js";
import { PlainRequests, type SpelledResponse } from "./plain-requests.js";
import {
  codes,
  type RateLimitDescriptor,
  type RateLimitRequest,
  type RateLimitResponse,
} from "./rate-limit-messages.js";
import type { ReferenceMetrics } from "./reference-metrics.js";
import { overrideUnit, type RequestOverrides } from "./request-overrides.js";
import { type AnswerOptions, OwnRules, passedStatus, refuseAll, respond } from "./respond.js";

interface ShouldRateLimitOptions {
  readonly limiter: Limiter;
  /** Default for the attribute `region`. */
  readonly region?: string | undefined;
  /** Absent without --envoy-config. */
  readonly tree: () => LimitTree | undefined;
  /** Whether limits have not arrived yet: until then nothing can be decided, and the caller's failure mode applies. */
  readonly lacksLimits: () => boolean;
  readonly overrides: RequestOverrides;
  readonly answers: AnswerOptions;
  readonly onGivenBack: (outcome: GivenBackOutcome) => void;
  /** Present with --envoy-metrics. */
  readonly counts?: ReferenceMetrics | undefined;
}

/** Nothing can be decided now, through no fault of the caller or Sluice. */
export class Undecided extends Error {}

/** A descriptor and its outcome. */
export interface Asked {
  readonly descriptor: RateLimitDescriptor;
  readonly hits: number;
  limit: FoundLimit | undefined;
  /** The result for its own limit; filled by the decision. */
  check: CheckResult | undefined;
}

type FoundLimit =
  | ({ readonly kind: "placed" } & Found)
  | { readonly kind: "override"; readonly override: Override; readonly counter: string };

export interface ShouldRateLimit {
  (request: RateLimitRequest): Promise<RateLimitResponse>;
  /** The fast path, if there is one; undefined if the request does not qualify. Throws what the full path rejects with. */
  plain?(request: RateLimitRequest): PlainAnswer | undefined;
}

type PlainAnswer = MaybePromise<RateLimitResponse | SpelledResponse>;

/** More than any limit; beyond 2^53 numbers lose precision. */
const MOST_HITS = 0xffff_ffff;

export function createShouldRateLimit(
  options: ShouldRateLimitOptions,
): ShouldRateLimit & Required<Pick<ShouldRateLimit, "plain">> {
  const { limiter, region, overrides, answers, counts } = options;
  const ownRules = new OwnRules(limiter);
  const ownBook = withoutStarterRules(limiter);

  const plain = new PlainRequests({ limiter, region, answers, tree: options.tree, ownBook, finish: withLease });

  const shouldRateLimit = (request: RateLimitRequest): Promise<RateLimitResponse> => {
    counts?.note("total_requests");
    return decide(request).catch((error: unknown) => responseTo(error, request));
  };
  return Object.assign(shouldRateLimit, {
    plain(request: RateLimitRequest): PlainAnswer | undefined {
      // Only the full path feeds the reference's metrics.
      if (counts !== undefined || options.lacksLimits()) return undefined;
      const taken = plain.plainOf(request);
      if (taken === undefined) return undefined;
      try {
        const made = plain.decide(request, taken);
        if (!(made instanceof Promise)) return plain.answer(request, mustBeDecided(made), taken);
        return made.then(
          (decision) => plain.answer(request, mustBeDecided(decision), taken),
          (error) => responseTo(error, request),
        );
      } catch (error) {
        return responseTo(error, request);
      }
    },
  });

  function responseTo(error: unknown, request: RateLimitRequest): RateLimitResponse {
    const complex = tooComplex(error, request);
    if (complex !== undefined) return complex;
    counts?.note(error instanceof Undecided ? "redis_error" : "service_error");
    throw error;
  }

  /** Store failure may be reported as an error, so that the caller's failure mode decides. */
  function mustBeDecided(decision: Decision): Decision {
    if (!answers.failsWithStore || decision.degraded === undefined) return decision;
    void decision.lease?.release().catch(() => undefined);
    throw new Undecided("the store does not answer (--envoy-store-failure error)");
  }

  function withLease(response: RateLimitResponse, { lease }: Decision): RateLimitResponse {
    return lease === undefined ? response : { ...response, abandon: () => abandon(lease, options) };
  }

  async function decide(request: RateLimitRequest): Promise<RateLimitResponse> {
    mustBeWhole(request);
    if (options.lacksLimits()) throw new Undecided("no limits were received yet from the control plane (--envoy-xds)");
    const leased = await releaseLeases(request, options);
    const tree = options.tree();
    const asked = request.descriptors.map((descriptor) => ask(descriptor, request, tree));
    if (leased.length === asked.length)
      return { overallCode: codes.ok, statuses: asked.map(() => passedStatus()), responseHeadersToAdd: [] };
    dropReplaced(asked);
    const charged = asked.filter(({ limit }) => limit !== undefined && !isUnlimited(limit));
    const parts = [
      { ...ownPart(request, { asked, region }), book: ownBook() },
      ...charged.map((one) => partOf(one, { overrides, answers })),
    ];
    await giveBackParts(charged, parts, options);
    const { decision, parts: results } = await limiter.checkAll(parts, { wait: false });
    mustBeDecided(decision);
    for (let i = 0; i < charged.length; i++) charged[i]!.check = results[i + 1]![0];

    for (const one of charged)
      counts?.add(one, { domain: request.domain, decision, isCounted: isCountedInFull(one, answers) });

    const quotaUsedUp = isQuotaUsedUp(asked, answers);
    if (decision.allowed && quotaUsedUp) await refundPlain(limiter, { decision, parts, results });
    if (answers.shadowMode && (!decision.allowed || quotaUsedUp)) counts?.note("global_shadow_mode");
    const own = ownRules.assign(results[0]!, asked, request.domain);
    const response = respond({ request, asked, own, decision, quotaUsedUp, answers });
    return withLease(response, decision);
  }
}

/** Usage that a descriptor reports stays counted even if the request is refused; only requested hits are refunded. */
async function refundPlain(
  limiter: Limiter,
  made: { decision: Decision; parts: readonly CheckPart[]; results: readonly (readonly CheckResult[])[] },
): Promise<void> {
  const { decision, parts, results } = made;
  if (!parts.some(({ charge }) => charge)) return void (await limiter.refund(decision));
  const plain = parts.filter(({ charge }, i) => !charge && results[i]!.some(({ allowed }) => allowed));
  if (plain.length > 0) await limiter.giveBackAll(plain);
  await decision.lease?.release();
}

/**
 * Values that take too many steps to match count as over the limit. On an error Envoy lets the request pass unless it fails closed, and the
 * values are often client-controlled: sending such a value must not get a client through.
 */
function tooComplex(error: unknown, request: RateLimitRequest): RateLimitResponse | undefined {
  return error instanceof SluiceError && error.code === "too-complex" ? refuseAll(request) : undefined;
}

/** A separate rule book for Envoy requests while the starter rules are in force; absent otherwise. */
function withoutStarterRules(limiter: Limiter): () => RuleBook | undefined {
  let seen: readonly Rule[] | undefined;
  let book: RuleBook | undefined;
  return () => {
    if (seen !== limiter.rules) {
      seen = limiter.rules;
      book = seen.some(isStarterRule) ? ruleBook(seen.filter((rule) => !isStarterRule(rule))) : undefined;
    }
    return book;
  };
}

function mustBeWhole({ domain, descriptors }: RateLimitRequest): void {
  if (domain === "") throw new SluiceError("invalid-request", "domain: expected a name that is not empty");
  if (descriptors.length === 0) throw new SluiceError("invalid-request", "descriptors: expected at least one");
  if (descriptors.length > MOST_DESCRIPTORS || descriptors.some(({ entries }) => entries.length > MOST_ENTRIES)) {
    throw new SluiceError(
      "invalid-request",
      `descriptors: expected at most ${MOST_DESCRIPTORS}, each with at most ${MOST_ENTRIES} entries`,
    );
  }
}

/** A descriptor's own hits take precedence, and 0 only peeks; otherwise the request's, at least 1. */
function ask(descriptor: RateLimitDescriptor, request: RateLimitRequest, tree: LimitTree | undefined): Asked {
  const { domain, hitsAddend } = request;
  // Depending on the transport, 64-bit integers arrive as an object, a string or a number.
  const own = descriptor.hitsAddend?.value;
  const hits = own == null ? Math.max(1, hitsAddend) : Math.min(Number(String(own)), MOST_HITS);
  if (leaseOf(descriptor) !== undefined) return { descriptor, hits: 0, limit: undefined, check: undefined };
  const limit = tree === undefined ? undefined : findLimit(descriptor, domain, tree);
  return { descriptor, hits, limit, check: undefined };
}

/**
 * Under Sluice's own rules the request costs its own hits, or nothing if all its descriptors only peek. If each descriptor carries hits,
 * the work has been done already: it is counted, never refused.
 */
function ownPart(
  request: RateLimitRequest,
  { asked, region }: { asked: readonly Asked[]; region: string | undefined },
): CheckPart {
  const looksOnly = asked.every(({ hits }) => hits === 0);
  const late = request.descriptors.every(({ hitsAddend }) => hitsAddend != null);
  return {
    attributes: inRegion(ownAttributes(request.domain, request.descriptors), region),
    cost: looksOnly ? 0 : Math.max(1, request.hitsAddend),
    ...(late && { charge: true }),
  };
}

function findLimit({ limit, entries }: RateLimitDescriptor, domain: string, tree: LimitTree): FoundLimit | undefined {
  const { allQuotas } = tree;
  if (!tree.knows(domain)) return undefined;
  const found = tree.find(domain, entries);
  if (limit == null) return found && { kind: "placed", ...found };
  const unit = overrideUnit(limit.unit);
  if (unit === undefined) throw new SluiceError("invalid-request", "descriptors.limit.unit: expected a unit of time");
  const { ruleId, counter } = overrideCounter(unit, found, { domain, entries });
  const override = { requestsPerUnit: limit.requestsPerUnit, unit, ruleId, quota: allQuotas };
  return { kind: "override", override, counter };
}

function isUnlimited(limit: FoundLimit | undefined): boolean {
  return limit?.kind === "placed" && limit.placed.limit.unlimited;
}

/** `replaces` drops every limit in the same request whose name it lists. */
function dropReplaced(asked: readonly Asked[]): void {
  if (!asked.some(({ limit }) => limit?.kind === "placed" && limit.placed.limit.replaces.length > 0)) return;
  const replaced = new Set(asked.flatMap(({ limit }) => (limit?.kind === "placed" ? limit.placed.limit.replaces : [])));
  for (const one of asked) {
    const named = one.limit?.kind === "placed" ? one.limit.placed.limit : undefined;
    // An unlimited one stays: the reference checks only the names of limits that would be counted.
    if (named?.name !== undefined && !named.unlimited && replaced.has(named.name)) one.limit = undefined;
  }
}

function partOf(
  one: Asked,
  { overrides, answers }: { overrides: RequestOverrides; answers: AnswerOptions },
): CheckPart {
  const { limit, hits } = one;
  const found = limit!;
  const charge = { charge: isCountedInFull(one, answers) };
  if (found.kind === "placed") {
    return {
      attributes: { [LIMIT_ATTRIBUTE]: ruleIdOf(found.placed), [COUNTER_ATTRIBUTE]: found.counter },
      cost: costOf(hits, found.placed.limit.requestsPerUnit),
      ...charge,
    };
  }
  return {
    attributes: { [COUNTER_ATTRIBUTE]: found.counter },
    cost: costOf(hits, found.override.requestsPerUnit),
    book: overrides.bookOf(found.override),
    ...charge,
  };
}

/**
 * The protocol does not mark stream-done calls, but only they carry hits in a descriptor: like the reference, count what was used. Does not
 * apply to concurrency places, which are taken or not.
 */
function isCountedInFull({ descriptor, limit }: Asked, { countsRefused }: AnswerOptions): boolean {
  const placed = limit?.kind === "placed" ? limit.placed.limit : undefined;
  if (placed?.extra.algorithm === "concurrency") return false;
  if (placed?.countRefused !== undefined) return placed.countRefused;
  return countsRefused || descriptor.hitsAddend != null;
}

function costOf(hits: number, most: number): number {
  return hits > 0 && most === 0 ? Math.max(BLOCKING_COST, hits) : hits;
}

/** Under `allQuotas` a descriptor without a limit is a quota that is never used up. */
function isQuotaUsedUp(asked: readonly Asked[], { allQuotas }: AnswerOptions): boolean {
  const quotas = asked.filter(
    ({ limit }) => !isUnlimited(limit) && (allQuotas || (limit?.kind === "placed" && limit.placed.quota)),
  );
  return quotas.length > 0 && quotas.every((quota) => quota.check?.allowed === false && !isShadow(quota));
}

function isShadow({ limit }: Asked): boolean {
  return limit?.kind === "placed" && limit.placed.shadow;
}
