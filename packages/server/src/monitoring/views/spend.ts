/** Units spent: by rule, by estimate and by model. */
import type { StatsPoint } from "./stats.js";
import type { Scope, Series, StatsSpan } from "./time.js";

/** `GET /admin/v1/spend?window=hour|day&rule=ID`: counts of rules with a `unit`, and usage of language models. */
export interface SpendView {
  readonly atMs: number;
  readonly window: StatsSpan;
  readonly scope: Scope;
  readonly stepMs: number;
  /** The steps of every series. */
  readonly steps: readonly Pick<StatsPoint, "atMs" | "coveredMs" | "scope">[];
  /** Rules with a unit or an estimate, at most 100. */
  readonly rules: readonly SpendRuleView[];
  /** Most tokens first; empty without the LLM gateway. */
  readonly models: readonly ModelView[];
  /** The price table, if the service has one. */
  readonly prices?: readonly ModelPrice[];
}

export interface SpendRuleView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  /** `requests` if the rule declares none. */
  readonly unit: string;
  /** Units spent in the window: charged directly, or settled; absent for a rule without a unit. */
  readonly spent?: number;
  readonly spentBy?: Series;
  /** For a rule with `estimate`. */
  readonly estimate?: EstimateView;
}

/** Units in the window, per step, and the learned estimates. */
export interface EstimateView {
  readonly held: number;
  readonly settled: number;
  /** Settled beyond the held amount. */
  readonly overrun: number;
  readonly heldBy: Series;
  readonly settledBy: Series;
  readonly overrunBy: Series;
  /** Only for a single rule (`?rule=`), and if the store answers; the rule's own keys first, then those of overrides. */
  readonly learned?: readonly LearnedView[];
}

export interface LearnedView {
  /** "" for the rule's keys; otherwise a digest of the override's match. */
  readonly keyClass: string;
  /** Number of settled costs that it is based on. */
  readonly requests: number;
  readonly quantile: number;
  readonly default: number;
  /** Absent while there is too little data: `default` is held then. */
  readonly learned?: number;
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

export interface ModelView {
  /** As in the price table, otherwise as in calls; `(other)` for the rest. */
  readonly model: string;
  readonly calls: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  /** Absent without a price table. */
  readonly microdollars?: number;
}

/** Dollars per million tokens. */
export interface ModelPrice {
  readonly model: string;
  readonly prompt: number;
  readonly completion: number;
  readonly cachedPrompt: number;
  readonly cacheWrite: number;
}
