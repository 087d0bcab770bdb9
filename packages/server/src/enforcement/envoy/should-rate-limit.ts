/**
 * `ShouldRateLimit`: a request with descriptors in, a response with one status per descriptor out. The whole story is `decide`.
 *
 *   1. each descriptor finds its limit in Envoy's files, or brings one            none: it passes
 *   2. limits that others replace are dropped; unlimited ones need no counter
 *   3. all that is left, and Sluice's own rules on the request's entries, is decided as ONE request: nothing is charged unless all passes
 *   4. quotas refuse only if all of them are used up; then what was charged is given back
 *   5. each descriptor's status tells its tightest limit, with the true remaining and wait
 *
 * Descriptors that give back (`is_negative_hits`) free their limits' counters of so many hits, whichever instance was asked for them; where all
 * descriptors do, so does the request under Sluice's own rules. Then all that is left is looked at, for the statuses.
 */
import {
  type Attributes,
  type CheckPart,
  type CheckResult,
  type Limiter,
  type Rule,
  type RuleBook,
  ruleBook,
  SluiceError,
} from "sluice";
import { isStarterRule } from "../../starter-rules.js";
import {
  BLOCKING_COST,
  COUNTER_ATTRIBUTE,
  LIMIT_ATTRIBUTE,
  type Override,
  overrideRuleId,
  ruleIdOf,
} from "./envoy-rules.js";
import { counterOf, type LimitTree, type PlacedLimit } from "./limit-tree.js";
import type { RateLimitDescriptor, RateLimitRequest, RateLimitResponse } from "./rate-limit-messages.js";
import { overrideUnit, type RequestOverrides } from "./request-overrides.js";
import { OwnRules, refuseAll, respond } from "./respond.js";

export interface ShouldRateLimitOptions {
  readonly limiter: Limiter;
  /** Absent without --envoy-config. */
  readonly tree: () => LimitTree | undefined;
  readonly overrides: RequestOverrides;
}

/** A descriptor with what became of it. */
export interface Asked {
  readonly descriptor: RateLimitDescriptor;
  readonly hits: number;
  limit: FoundLimit | undefined;
  /** Of its own limit; filled by the decision. */
  check: CheckResult | undefined;
}

export type FoundLimit =
  | { readonly kind: "placed"; readonly placed: PlacedLimit; readonly counter: string }
  | { readonly kind: "override"; readonly override: Override; readonly counter: string };

export type ShouldRateLimit = (request: RateLimitRequest) => Promise<RateLimitResponse>;

const MOST_DESCRIPTORS = 256;
const MOST_ENTRIES = 64;

export function createShouldRateLimit(options: ShouldRateLimitOptions): ShouldRateLimit {
  const { limiter, overrides } = options;
  const ownRules = new OwnRules(limiter);
  const ownBook = withoutStarterRules(limiter);

  return (request) => decide(request).catch((error: unknown) => refuseComplex(error, request));

  async function decide(request: RateLimitRequest): Promise<RateLimitResponse> {
    mustBeWhole(request);
    const tree = options.tree();
    const asked = request.descriptors.map((descriptor) => ask(descriptor, request, tree));
    dropReplaced(asked);
    const charged = asked.filter(({ limit }) => limit !== undefined && !isUnlimited(limit));
    const parts = [{ ...ownPart(request, asked), book: ownBook() }, ...charged.map((one) => partOf(one, overrides))];
    if (request.descriptors.some(({ isNegativeHits }) => isNegativeHits))
      await giveBackParts({ limiter, request, charged, parts });
    const { decision, parts: results } = await limiter.checkAll(parts);
    for (let i = 0; i < charged.length; i++) charged[i]!.check = results[i + 1]![0];

    const quotaUsedUp = isQuotaUsedUp(asked);
    if (decision.allowed && quotaUsedUp) await limiter.refund(decision);
    return respond({
      asked,
      own: ownRules.assign(results[0]!, asked, request.domain),
      decision,
      refused: !decision.allowed || quotaUsedUp,
    });
  }
}

/**
 * Values that take too many steps to match are over their limit. To Envoy an error means "let it pass" unless it is told otherwise,
 * and the values are often the client's own: nobody may get through by sending such a value.
 */
function refuseComplex(error: unknown, request: RateLimitRequest): RateLimitResponse {
  if (error instanceof SluiceError && error.code === "too-complex") return refuseAll(request);
  throw error;
}

/** A book of their own for requests of Envoy while the starter rules are in force; absent, those in force count. */
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

/** A descriptor's own hits win, and 0 only looks; else the request's, at least 1. */
function ask(descriptor: RateLimitDescriptor, request: RateLimitRequest, tree: LimitTree | undefined): Asked {
  const { domain, hitsAddend } = request;
  // 64 bits arrive as an object, a text or a number, by the transport.
  const own = descriptor.hitsAddend?.value;
  const hits = own === undefined ? Math.max(1, hitsAddend) : Math.min(Number(String(own)), Number.MAX_SAFE_INTEGER);
  const limit = tree === undefined ? undefined : findLimit(descriptor, domain, tree);
  return { descriptor, hits, limit, check: undefined };
}

/** Under Sluice's own rules the request costs what it says itself, and nothing if all its descriptors only look. */
function ownPart(request: RateLimitRequest, asked: readonly Asked[]): CheckPart {
  const looksOnly = asked.every(({ hits }) => hits === 0);
  return { attributes: ownAttributes(request), cost: looksOnly ? 0 : Math.max(1, request.hitsAddend) };
}

function isGivenBack({ descriptors }: RateLimitRequest): boolean {
  return descriptors.every(({ isNegativeHits }) => isNegativeHits);
}

function findLimit({ limit, entries }: RateLimitDescriptor, domain: string, tree: LimitTree): FoundLimit | undefined {
  if (!tree.knows(domain)) return undefined;
  const found = tree.find(domain, entries);
  if (limit == null) return found && { kind: "placed", ...found };
  const unit = overrideUnit(limit.unit);
  if (unit === undefined) throw new SluiceError("invalid-request", "descriptors.limit.unit: expected a unit of time");
  const override = { requestsPerUnit: limit.requestsPerUnit, unit, ruleId: overrideRuleId(unit, found?.placed) };
  return { kind: "override", override, counter: counterOf(domain, entries) };
}

function isUnlimited(limit: FoundLimit): boolean {
  return limit.kind === "placed" && limit.placed.limit.unlimited;
}

/** `replaces` drops every limit of the same request whose name is listed. */
function dropReplaced(asked: readonly Asked[]): void {
  if (!asked.some(({ limit }) => limit?.kind === "placed" && limit.placed.limit.replaces.length > 0)) return;
  const replaced = new Set(asked.flatMap(({ limit }) => (limit?.kind === "placed" ? limit.placed.limit.replaces : [])));
  for (const one of asked) {
    const named = one.limit?.kind === "placed" ? one.limit.placed.limit : undefined;
    // Unlimited, it stays so: the reference looks at the names of those that would be counted.
    if (named?.name !== undefined && !named.unlimited && replaced.has(named.name)) one.limit = undefined;
  }
}

function partOf({ limit, hits }: Asked, overrides: RequestOverrides): CheckPart {
  const found = limit!;
  if (found.kind === "placed") {
    return {
      attributes: { [LIMIT_ATTRIBUTE]: ruleIdOf(found.placed), [COUNTER_ATTRIBUTE]: found.counter },
      cost: costOf(hits, found.placed.limit.requestsPerUnit),
    };
  }
  return {
    attributes: { [COUNTER_ATTRIBUTE]: found.counter },
    cost: costOf(hits, found.override.requestsPerUnit),
    book: overrides.bookOf(found.override),
  };
}

function costOf(hits: number, most: number): number {
  return hits > 0 && most === 0 ? BLOCKING_COST : hits;
}

/**
 * What Sluice's own rules see: the domain and every entry, the first where a key comes twice. The request is one request: a rule
 * by user must not charge it once for each descriptor that mentions the user.
 */
function ownAttributes({ domain, descriptors }: RateLimitRequest): Attributes {
  // A plain object: those without a prototype are slow to read.
  const attributes: Record<string, string> = { domain };
  for (const { entries } of descriptors) {
    for (const { key, value } of entries) {
      if (key === LIMIT_ATTRIBUTE || key === COUNTER_ATTRIBUTE || Object.hasOwn(attributes, key)) continue;
      // Assigned, this one name would change the prototype.
      if (key === "__proto__") Object.defineProperty(attributes, key, { value, enumerable: true });
      else attributes[key] = value;
    }
  }
  return attributes;
}

function isQuotaUsedUp(asked: readonly Asked[]): boolean {
  const quotas = asked.filter(({ limit }) => limit?.kind === "placed" && limit.placed.quota && !isUnlimited(limit));
  return quotas.length > 0 && quotas.every((quota) => quota.check?.allowed === false && !isShadow(quota));
}

function isShadow({ limit }: Asked): boolean {
  return limit?.kind === "placed" && limit.placed.shadow;
}

/** The parts that give back do so now, and are then only looked at. */
async function giveBackParts({
  limiter,
  request,
  charged,
  parts,
}: {
  limiter: Limiter;
  request: RateLimitRequest;
  charged: readonly Asked[];
  parts: CheckPart[];
}): Promise<void> {
  const given = [isGivenBack(request), ...charged.map(({ descriptor }) => descriptor.isNegativeHits)];
  await giveBack(
    limiter,
    parts.filter((_, i) => given[i]),
  );
  for (let i = 0; i < parts.length; i++) if (given[i]) parts[i] = { ...parts[i]!, cost: 0 };
}

/** While the store is away nothing can be given back, and the look that follows is answered by policy: the caller cannot mend it. */
async function giveBack(limiter: Limiter, parts: readonly CheckPart[]): Promise<void> {
  try {
    await limiter.giveBackAll(parts);
  } catch (error) {
    if (!(error instanceof SluiceError && error.code === "store-unavailable")) throw error;
  }
}
