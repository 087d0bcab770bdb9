/**
 * The answer to a request: the decision, and the outcome of each check behind it.
 * These shapes are public (library, HTTP, gRPC, dashboard). A refusal is a value, never an error.
 */

/** Why a check or a decision refused. */
export type Reason =
  | "limit"
  | "min-interval"
  | "concurrency"
  | "load"
  | "cost-exceeds-limit"
  | "blocked"
  | "too-many-waiting"
  | "store-unavailable";

/** Set if a failure policy answered instead of the store: the policy of the rules concerned, strictest first. */
export type Degraded = "deny" | "local" | "allow";

/** `candidate` marks a rule's second set of numbers: reported, never enforced. */
export type CheckMode = "enforce" | "shadow" | "candidate";

/**
 * `compensated`: decided slot by slot on a cluster and refunded on refusal, instead of in one script. `prefetched`: decided in this
 * process, from prefetched units, or refused by the answer to a fetch; the limit still holds in every window, and `remaining` is a lower
 * bound.
 */
export type Guarantee = "atomic" | "compensated" | "prefetched";

/**
 * The wait reported if no wait helps (`cost-exceeds-limit`): the longest that a timer can hold, about 25 days. Zero would invite a client
 * to try again at once, and JSON has no Infinity.
 */
export const NEVER_MS = 2_147_483_647;

/** One rule's answer. The numbers are those after the charge, if there was one. */
export interface CheckResult {
  readonly rule: string;
  readonly mode: CheckMode;
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** By how many units the counter is past its limit, if it is: charges may exceed it, or the limit was lowered. */
  readonly debt?: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly reason?: Reason;
  readonly variant?: string;
  /** How long until the request's turn under this rule comes, if it has not come yet (`maxWait`). */
  readonly delayMs?: number;
}

/** Units held until the real cost is known: settle, extend or cancel it by its id, from any instance. */
export interface Reservation {
  readonly id: string;
  /** If it is not settled by then, what is held counts as spent. */
  readonly expiresAfterMs: number;
  /** Units by rule. */
  readonly held: Readonly<Record<string, number>>;
  /**
   * Under rules with `overrun: finish`, if the request declares its own upper bound: what it may cost in excess of what is held. Summed
   * over the requests in flight, that is the most by which a window can exceed its limit.
   */
  readonly mayOverrun?: Readonly<Record<string, number>>;
}

/** What a settlement did. Settling again returns the same. */
export interface Settlement {
  /** False for a reservation that is unknown or has expired, and while the store does not answer. */
  readonly settled: boolean;
  /** What each rule finally counts for the request. */
  readonly charged: Readonly<Record<string, number>>;
  /** How much of it exceeds what was held. */
  readonly overrun: Readonly<Record<string, number>>;
  /** Why it is not settled. `pending`: the store does not answer; the settlement is kept, and sent when it does. */
  readonly reason?: "unknown" | "expired" | "pending";
}

/** The answer to a request. `rule` and the numbers are those of the rule that matters most to the client. */
export interface DecisionSummary {
  readonly allowed: boolean;
  /**
   * The refusing rule with the longest wait, otherwise the enforced rule with the smallest remaining share; absent if no enforced rule
   * applied.
   */
  readonly rule?: string;
  readonly limit?: number;
  readonly remaining?: number;
  /** By how many units the counter of `rule` is past its limit, if it is. */
  readonly debt?: number;
  /** 0 if allowed; otherwise the earliest time at which the same request could pass if nothing else arrives. */
  readonly retryAfterMs: number;
  /** When the counter of `rule` is empty again (or full, for a bucket). */
  readonly resetAfterMs: number;
  /** How long to wait before the request may go on: the longest wait of its rules with `maxWait`; 0 if none, or if it is refused. */
  readonly delayMs: number;
  readonly reason?: Reason;
  /** Every enforced rule that refused. */
  readonly violated: readonly string[];
  readonly rulesVersion: number;
  readonly guarantee: Guarantee;
  readonly checks: readonly CheckResult[];
  /** Set if a rule estimates its cost, and the request does not declare it. */
  readonly reservation?: Reservation;
  readonly degraded?: Degraded;
}
