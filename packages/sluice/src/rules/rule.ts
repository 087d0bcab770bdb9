/**
 * A rule as people write it: the object in the rule document, the same in the library, the API, the database and the dashboard. Types only.
 * `validate-rules.ts` checks the rest: ranges, durations, references.
 */

export type AlgorithmName =
  | "token-bucket"
  | "fixed-window"
  | "rolling-window"
  | "sliding-counter"
  | "gcra"
  | "concurrency"
  | "load-shedding";

export type RuleMode = "enforce" | "shadow" | "off";
export type FailurePolicy = "allow" | "deny" | "local";
/** Bounded, unlike `allow`, and not itself an outage, unlike `deny`. */
export const DEFAULT_FAILURE_POLICY: FailurePolicy = "local";
export type RollingStorage = "sorted-set" | "packed";

/** A duration: "250ms", "90s", "5m", "1h", "30d". */
export type Duration = string;

/** A value (glob: `*` within a segment, `**` across; `"*"` alone: the attribute is present), or a list of which one must match. */
export type MatchValue = string | number | boolean | readonly (string | number | boolean)[];
export type Match = Readonly<Record<string, MatchValue>>;

/** The facts about a request. `undefined` counts as absent. */
export type AttributeValue = string | number | boolean | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

interface Blocking {
  /** A key that was refused stays refused for this long; with a list, each successive block takes the next length. */
  blockFor?: Duration | readonly Duration[];
}

interface Waiting {
  /** Instead of refusing: a turn in the future, at most this far away. */
  maxWait?: Duration;
}

interface TokenBucketNumbers extends Blocking, Waiting {
  /** Capacity; the bucket starts full. */
  limit: number;
  /** The time in which an empty bucket fills evenly. Either this or `refill`. */
  window?: Duration;
  refill?: { amount: number; every: Duration };
  prefetch?: Duration;
}

export interface FixedWindowNumbers extends Blocking, Waiting {
  limit: number;
  /** With `align: calendar`: "1d" or "day", "7d" or "week" (from Monday), "month". */
  window: Duration;
  align?: "epoch" | "calendar";
  /** IANA name; needs `align: calendar`. Default UTC. */
  timezone?: string;
  prefetch?: Duration;
}

interface RollingWindowNumbers extends Blocking, Waiting {
  limit: number;
  window: Duration;
  /** Minimum interval between two admitted requests; at most the window. */
  minInterval?: Duration;
  storage?: RollingStorage;
  prefetch?: Duration;
}

interface SlidingCounterNumbers extends Blocking {
  limit: number;
  window: Duration;
}

interface GcraNumbers extends Blocking, Waiting {
  limit: number;
  window: Duration;
  /** How many may arrive at once. Default: `limit`. */
  burst?: number;
  prefetch?: Duration;
}

interface ConcurrencyNumbers {
  /** Places. */
  limit: number;
  /** How long a lease lives unless renewed. Default 30s. */
  ttl?: Duration;
}

/**
 * The source of utilisation: requests in flight against a limit, this process's event loop, or reports from the program or its backends.
 */
export type LoadSignal = "inflight" | "event-loop" | "reported";

interface LoadSheddingFields {
  /** With several, the highest counts. */
  signal: LoadSignal | readonly LoadSignal[];
  /** Places for requests in flight, or `auto`: estimated from what the server delivers. Only with the signal `inflight`. */
  limit?: number | "auto";
  /** The attribute with a request's class, and the class for requests whose attribute is missing or unknown. */
  class?: { attribute: string; default: string };
  /** The utilisation at which each class is shed. Default: `sheddable` 0.85, `normal` 0.92, `important` 1, `critical` 2. */
  classes?: Readonly<Record<string, number>>;
  /** An attribute: within a class, values above their fair share are shed first. */
  fairBy?: string;
}

/** The numbers of each counting algorithm, tagged with its name. */
export type AlgorithmNumbers =
  | ({ algorithm: "token-bucket" } & TokenBucketNumbers)
  | ({ algorithm: "fixed-window" } & FixedWindowNumbers)
  | ({ algorithm: "rolling-window" } & RollingWindowNumbers)
  | ({ algorithm: "sliding-counter" } & SlidingCounterNumbers)
  | ({ algorithm: "gcra" } & GcraNumbers)
  | ({ algorithm: "concurrency" } & ConcurrencyNumbers);

/** Any number field of any algorithm; the algorithm in force decides which of them fit. */
export interface NumberFields {
  limit?: number;
  window?: Duration;
  refill?: { amount: number; every: Duration };
  align?: "epoch" | "calendar";
  timezone?: string;
  minInterval?: Duration;
  storage?: RollingStorage;
  burst?: number;
  ttl?: Duration;
  /** How long an instance may use prefetched units: they are decided in process, and the limit still holds in every window. */
  prefetch?: Duration;
  maxWait?: Duration;
  blockFor?: Duration | readonly Duration[];
}

/** Different numbers for some of the keys; the first match wins. */
export interface Override extends NumberFields {
  match: Match;
}

/** A second set of numbers on the same traffic, with a separate counter: reported, never enforced. */
export interface Candidate extends NumberFields {
  algorithm?: AlgorithmName;
}

/** A share of the keys, by stable hash, under different numbers or a different algorithm. */
export interface Variant extends NumberFields {
  name: string;
  weight: number;
  algorithm?: AlgorithmName;
}

/** What to hold if a request lacks its cost attribute: what it declares, capped by what the rule's keys really cost before. */
export interface Estimate {
  /** The request's own upper bound, such as `max_tokens`. */
  attribute?: string;
  /**
   * Quantile of earlier settled costs: this share of them was not higher. Default 0.97; in a rolling window with room for many requests,
   * down to 0.8.
   */
  quantile?: number;
  /** Held while neither the request nor earlier costs are known. */
  default: number;
  /** A reservation that is not settled within this time counts as spent. Default 5m. */
  ttl?: Duration;
  /** If a request costs more than was held: `finish` counts it anyway (debt), `stop` refuses to extend. Default finish. */
  overrun?: "finish" | "stop";
}

type RuleScope = "region" | "global";

/** For a rule with `adapt`: what programs and backends report, or the busiest event loop among the instances. */
export type AdaptSignal = "reported" | "event-loop";

/** Moves the limit between two numbers so that utilisation approaches a target. */
export interface Adapt {
  /** With several, the highest counts. */
  signal: AdaptSignal | readonly AdaptSignal[];
  /** Above 0, up to 1. */
  target: number;
  min: number;
  max: number;
}

interface RuleBase {
  /** Unique; `[a-z0-9][a-z0-9-_.]{0,63}`. */
  id: string;
  description?: string;
  /** Words for finding and grouping rules: `checkout`, `team:web`. Enforcement ignores them. */
  tags?: readonly string[];
  /** All must hold; absent or `{}` = every request. */
  match?: Match;
  /** Attributes that form the counted key; `[]` = one counter for all. The rule does not apply if one is absent. */
  key: readonly string[];
  /** The cost of a request that names none; or the attribute that contains it. Default 1. */
  cost?: number | { attribute: string };
  /** What the rule counts, as a word for humans: `tokens`, `bytes`. Default `requests`; for `concurrency` places. */
  unit?: string;
  /** For a cost that is known only afterwards: what a check holds until the reservation is settled. */
  estimate?: Estimate;
  mode?: RuleMode;
  /** The failure policy: answers while the store does not. Default `local`. */
  onStoreFailure?: FailurePolicy;
  /** Where the rule counts: in this region's store, or in the global one through units held by the region. Default `region`. */
  scope?: RuleScope;
  overrides?: readonly Override[];
  candidate?: Candidate;
  variants?: readonly Variant[];
  /** Attribute: rules with the same value share a Redis Cluster slot. */
  colocate?: string;
  adapt?: Adapt;
}

/** A rule that counts in the store. */
export type CountingRule = RuleBase & AlgorithmNumbers;

/**
 * A rule that is decided in process, before anything is counted. Of the fields of other rules it has id, description, tags, match, key and
 * mode; validation refuses the rest.
 */
export type SheddingRule = RuleBase & {
  algorithm: "load-shedding";
  window?: never;
  refill?: never;
} & LoadSheddingFields;

export type Rule = CountingRule | SheddingRule;

export function isShedding(rule: Rule): rule is SheddingRule {
  return rule.algorithm === "load-shedding";
}

export function isCounting(rule: Rule): rule is CountingRule {
  return rule.algorithm !== "load-shedding";
}

export interface RuleDocument {
  rules: readonly Rule[];
}
