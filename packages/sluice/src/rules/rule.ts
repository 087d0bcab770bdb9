/**
 * A rule as people write it: the object of the rule document, the same in the library, the API, the database and the dashboard.
 * Types. `validate-rules.ts` checks the rest: ranges, durations, references.
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
/** Bounded, unlike `allow`, and no outage of its own, unlike `deny`. */
export const DEFAULT_FAILURE_POLICY: FailurePolicy = "local";
export type RollingStorage = "sorted-set" | "packed";

/** A span of time: "250ms", "90s", "5m", "1h", "30d". */
export type Duration = string;

/** A value (glob: `*` within a segment, `**` across; `"*"` alone: the attribute is present), or a list of which one must match. */
export type MatchValue = string | number | boolean | readonly (string | number | boolean)[];
export type Match = Readonly<Record<string, MatchValue>>;

/** The facts about a request. `undefined` counts as absent. */
export type AttributeValue = string | number | boolean | undefined;
export type Attributes = Readonly<Record<string, AttributeValue>>;

interface Blocking {
  /** A key that was refused stays refused for so long; of a list, each block that follows another takes the next. */
  blockFor?: Duration | readonly Duration[];
}

interface Waiting {
  /** Rather than refuse: a turn in the future, at most so far away. */
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
  /** Least distance between two admitted requests; at most the window. */
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
  /** How many may come at once. Default: `limit`. */
  burst?: number;
  prefetch?: Duration;
}

interface ConcurrencyNumbers {
  /** Places. */
  limit: number;
  /** How long a lease lives unless renewed. Default 30s. */
  ttl?: Duration;
}

/** Where utilisation comes from: requests in flight against a limit, this process's event loop, or reports of the program or its backends. */
export type LoadSignal = "inflight" | "event-loop" | "reported";

interface LoadSheddingFields {
  /** Of several, the highest counts. */
  signal: LoadSignal | readonly LoadSignal[];
  /** Places for requests in flight, or `auto`: estimated from what the server delivers. Only with the signal `inflight`. */
  limit?: number | "auto";
  /** The attribute that holds a request's class, and the class of a request without one or with an unknown one. */
  class?: { attribute: string; default: string };
  /** The utilisation at which each class is shed. Default: `sheddable` 0.85, `normal` 0.92, `important` 1, `critical` 2. */
  classes?: Readonly<Record<string, number>>;
  /** Attribute: within a class, its values above their fair share are shed first. */
  fairBy?: string;
}

/** The numbers of each algorithm that counts, tagged with its name. */
export type AlgorithmNumbers =
  | ({ algorithm: "token-bucket" } & TokenBucketNumbers)
  | ({ algorithm: "fixed-window" } & FixedWindowNumbers)
  | ({ algorithm: "rolling-window" } & RollingWindowNumbers)
  | ({ algorithm: "sliding-counter" } & SlidingCounterNumbers)
  | ({ algorithm: "gcra" } & GcraNumbers)
  | ({ algorithm: "concurrency" } & ConcurrencyNumbers);

/** Any number field of any algorithm; which of them fit is a question of the algorithm in force. */
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
  /** How long an instance may use units that it fetched ahead: they are decided in process, and the limit still holds in every window. */
  prefetch?: Duration;
  maxWait?: Duration;
  blockFor?: Duration | readonly Duration[];
}

/** Other numbers for some of the keys; the first that matches wins. */
export interface Override extends NumberFields {
  match: Match;
}

/** A second set of numbers on the same traffic, with a counter of its own: reported, never enforced. */
export interface Candidate extends NumberFields {
  algorithm?: AlgorithmName;
}

/** A share of the keys, by stable hash, under numbers (or an algorithm) of its own. */
export interface Variant extends NumberFields {
  name: string;
  weight: number;
  algorithm?: AlgorithmName;
}

/** Where a request lacks its cost attribute, so much is held: what it names, capped by what the rule's keys really cost before. */
export interface Estimate {
  /** The request's own upper bound, such as `max_tokens`. */
  attribute?: string;
  /** Of the costs that were settled before: this share of them was not higher. Default 0.97; in a rolling window down to 0.8, where many requests fit. */
  quantile?: number;
  /** Held while neither the request nor the past tells more. */
  default: number;
  /** A reservation that was not settled by then stands as spent. Default 5m. */
  ttl?: Duration;
  /** Where a request costs more than was held: `finish` counts it all the same (debt), `stop` refuses to extend. Default finish. */
  overrun?: "finish" | "stop";
}

type RuleScope = "region" | "global";

/** Of a rule with `adapt`: what programs and backends report, or the busiest event loop of the instances. */
export type AdaptSignal = "reported" | "event-loop";

/** The limit moves between two numbers, so that utilisation comes to a target. */
export interface Adapt {
  /** Of several, the highest counts. */
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
  /** Words to find and group rules by: `checkout`, `team:web`. Enforcement ignores them. */
  tags?: readonly string[];
  /** All must hold; absent or `{}` = every request. */
  match?: Match;
  /** Attributes that form the counted key; `[]` = one counter for all. The rule does not apply where one is absent. */
  key: readonly string[];
  /** The cost of a request that names none; or the attribute that holds it. Default 1. */
  cost?: number | { attribute: string };
  /** What the rule counts, as a word for people: `tokens`, `bytes`. Default `requests`; for `concurrency` places. */
  unit?: string;
  /** For a cost that is known only afterwards: what a check holds until the reservation is settled. */
  estimate?: Estimate;
  mode?: RuleMode;
  /** The failure policy: it answers while the store does not. Default `local`. */
  onStoreFailure?: FailurePolicy;
  /** Where the rule counts: in this region's store, or in the global one through units that the region holds. Default `region`. */
  scope?: RuleScope;
  overrides?: readonly Override[];
  candidate?: Candidate;
  variants?: readonly Variant[];
  /** Attribute whose rules share a Redis Cluster slot. */
  colocate?: string;
  adapt?: Adapt;
}

/** A rule that counts in the store. */
export type CountingRule = RuleBase & AlgorithmNumbers;

/**
 * A rule that is decided in process, before anything is counted. Of the fields of other rules it has id, description, tags, match, key and mode;
 * the validation refuses the rest.
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
