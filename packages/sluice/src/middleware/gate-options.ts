/**
 * The options that every middleware takes, and the limiter made from them. Mistakes throw when the middleware is made, not at the first
 * request.
 */
import { SluiceError } from "../errors.js";
import type { ClientAddressOptions } from "../http/client-address.js";
import type { HeadersOption } from "../http/rate-limit-fields.js";
import type { PathOptions } from "../http/request-path.js";
import { createLimiter, type Limiter } from "../limiter/limiter.js";
import type { AlgorithmName, Attributes, FailurePolicy, NumberFields, Rule } from "../rules/rule.js";
import type { Store } from "../store/store.js";
import { type LimitOf, LimitsByRequest } from "./limits-by-request.js";
import { checkValues } from "./option-values.js";
import type { SettleOption } from "./settle-option.js";

/** One rule in one line: `{ limit: 100, window: "1m" }` counts by client address. */
interface InlineRule extends NumberFields {
  /** Default `rolling-window`. */
  algorithm?: AlgorithmName;
  /** Attributes to count by. Default `["ip"]`. */
  key?: readonly string[];
  /** The policy's name in headers and in the store. Default: made from the numbers, such as `100-per-1m`. */
  name?: string;
  onStoreFailure?: FailurePolicy;
}

/** Exactly one of `limiter`, `rules` and `limit` defines what is enforced. */
export interface GateOptions<Request> extends Omit<InlineRule, "limit">, ClientAddressOptions {
  /** A number, or a function of the request with few distinct results: the limit of a client's plan. */
  limit?: number | LimitOf<Request>;
  limiter?: Limiter;
  rules?: readonly Rule[];
  /** Where the counters of `rules` or `limit` live. Default: the memory of this process. */
  store?: Store;
  /** More attributes of a request, in addition to `ip`, `method` and `path`; the same names replace these. */
  attributes?: (request: Request) => Attributes | Promise<Attributes>;
  /** Requests to let through uncounted. */
  skip?: (request: Request) => boolean | Promise<boolean>;
  /** The cost of a request. Default: the rules' own. */
  cost?: number | ((request: Request) => number | Promise<number>);
  /** Which rate limit fields to send. Default `draft-11`. */
  headers?: HeadersOption;
  /** Gives back what a request was charged if its response had a status below 400. */
  skipSuccessful?: boolean;
  /** Gives back what a request was charged if its response had a status of 400 or above, or was cut off. */
  skipFailed?: boolean;
  /** Where a response reports what its request has cost, for rules with `estimate`. */
  settle?: SettleOption<Request>;
  /** Which spellings of a path are equal, beyond those that RFC 3986 makes equal. */
  paths?: PathOptions;
  /** The peer's address, if the framework cannot provide it. */
  address?: (request: Request) => string | undefined;
}

export const NUMBER_FIELDS = [
  "limit",
  "window",
  "refill",
  "align",
  "timezone",
  "minInterval",
  "storage",
  "burst",
  "ttl",
  "prefetch",
  "maxWait",
  "blockFor",
] as const satisfies readonly (keyof NumberFields)[];
/** The fields of an inline rule. */
const INLINE_FIELDS = [...NUMBER_FIELDS, "algorithm", "key", "name", "onStoreFailure"] as const;
export const GATE_FIELDS = [
  ...INLINE_FIELDS,
  "limiter",
  "rules",
  "store",
  "attributes",
  "skip",
  "cost",
  "headers",
  "skipSuccessful",
  "skipFailed",
  "settle",
  "paths",
  "address",
  "trustProxy",
  "ipv6Prefix",
] as const;

/** Names familiar from other rate limiters. */
const calledHere: Readonly<Record<string, string>> = {
  max: "limit",
  points: "limit",
  windowMs: "window",
  timeWindow: "window",
  duration: "window",
  ttlMs: "ttl",
  keyGenerator: "attributes, with key",
  handler: "onRefused",
  standardHeaders: "headers",
  legacyHeaders: "headers",
  skipSuccessfulRequests: "skipSuccessful",
  skipFailedRequests: "skipFailed",
  ipv6Subnet: "ipv6Prefix",
};

type AnyOptions = Omit<GateOptions<never>, "attributes" | "skip" | "cost" | "settle" | "address" | "limit"> & {
  limit?: unknown;
};

/** Whether the options define what to enforce, or only how. */
export function hasRules({ limiter, rules, limit }: AnyOptions): boolean {
  return limiter !== undefined || rules !== undefined || limit !== undefined;
}

/** `extra`: the options that only this framework's middleware has. */
export function checkOptions(options: object, extra: readonly string[]): void {
  const known = new Set<string>([...GATE_FIELDS, ...extra]);
  for (const name of Object.keys(options)) {
    if (known.has(name)) continue;
    const here = Object.hasOwn(calledHere, name)
      ? `it is called ${calledHere[name]} here`
      : `known are ${[...known].join(", ")}`;
    throw new SluiceError("invalid-setting", `${name}: no such option; ${here}`);
  }
  checkValues(options);
}

interface FoundLimiter<Request> {
  readonly limiter: Limiter;
  /** True if it was made here, and must be closed here. */
  readonly owned: boolean;
  /** Set if the limit is a function. */
  readonly limits?: LimitsByRequest<Request>;
}

/** The limiter to use. */
export function limiterOf<Request>(options: GateOptions<Request>): FoundLimiter<Request> {
  const { limiter, rules, limit, store } = options;
  const named = [limiter && "limiter", rules && "rules", limit !== undefined && "limit"].filter(Boolean);
  if (named.length !== 1) {
    const got = named.length === 0 ? "none of them" : named.join(" and ");
    throw new SluiceError("invalid-setting", `options: expected exactly one of limiter, rules and limit, got ${got}`);
  }
  if (limiter !== undefined) {
    if (store !== undefined)
      throw new SluiceError("invalid-setting", "store: the limiter has its own; leave out one of them");
    return { limiter, owned: false };
  }
  const { limit: _, ...others } = options;
  if (typeof limit === "function") {
    const name = defaultName({ ...others, limit: "by-request" });
    const limits = new LimitsByRequest(limit, (one) => inlineRule({ name, ...others, limit: one }), store);
    return { limiter: limits.limiter, owned: true, limits };
  }
  const own = rules ?? [inlineRule({ ...others, ...(limit !== undefined && { limit }) })];
  return { limiter: createLimiter({ rules: own, ...(store !== undefined && { store }) }), owned: true };
}

function inlineRule(options: InlineRule): Rule {
  const numbers = Object.fromEntries(
    [...NUMBER_FIELDS, "onStoreFailure" as const]
      .map((name) => [name, options[name]] as const)
      .filter(([, value]) => value !== undefined),
  );
  const { algorithm = "rolling-window", key = ["ip"], name = defaultName(options) } = options;
  // The limiter validates the rule, including what these types cannot express.
  return { id: name, key, algorithm, ...numbers } as unknown as Rule;
}

/** Equal numbers give equal names in every process of a fleet, so that the processes share a counter. */
function defaultName({
  limit,
  window,
  refill,
  algorithm,
}: Omit<InlineRule, "limit"> & { limit?: number | string }): string {
  if (algorithm === "concurrency") return `${limit}-at-once`;
  return `${limit}-per-${window ?? refill?.every ?? "window"}`;
}

/**
 * Merges a route's own options over the application's. A route that defines what to enforce replaces the application's rules, and counts
 * separately, under the route's name; one that does not (`{ cost: 5 }`) continues with the application's limiter.
 */
export function routeOptions<O extends AnyOptions>(route: {
  base: O;
  own: O;
  limiter: Limiter | undefined;
  name: string;
}): O {
  const { base, own, limiter, name } = route;
  if (!hasRules(own)) {
    const how = omit(base, [...INLINE_FIELDS, "rules", "store"]);
    return { ...how, ...own, ...(limiter !== undefined && { limiter }) } as O;
  }
  const how = omit(base, [...INLINE_FIELDS, "rules", "limiter", ...(own.limiter === undefined ? [] : ["store"])]);
  return { ...how, ...(own.limit !== undefined && { name }), ...own } as O;
}

function omit(options: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !names.includes(name)));
}
