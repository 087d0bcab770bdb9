/** Units that were spent: by rule, by estimate and by model. */
import type { StatsPoint } from "./stats.js";
import type { Scope, Series, StatsSpan } from "./time.js";

/** `GET /admin/v1/spend?window=hour|day&rule=ID`: what rules with a `unit` counted, and what calls to models used. */
export interface SpendView {
  readonly atMs: number;
  readonly window: StatsSpan;
  readonly scope: Scope;
  readonly stepMs: number;
  /** The steps of every series. */
  readonly steps: readonly Pick<StatsPoint, "atMs" | "coveredMs" | "scope">[];
  /** Rules with a unit or an estimate, at most 100. */
  readonly rules: readonly SpendRuleView[];
  /** The most tokens first; empty without the LLM gateway. */
  readonly models: readonly ModelView[];
  /** The price table, if the service has one. */
  readonly prices?: readonly ModelPrice[];
}

export interface SpendRuleView {
  readonly rule: string;
  readonly mode: "enforce" | "shadow";
  /** `requests` where the rule names none. */
  readonly unit: string;
  /** Units that were spent in the window: charged at once, or settled; absent for a rule without a unit. */
  readonly spent?: number;
  readonly spentBy?: Series;
  /** Of a rule with `estimate`. */
  readonly estimate?: EstimateView;
}

/** Units in the window, by step, and what was learned. */
export interface EstimateView {
  readonly held: number;
  readonly settled: number;
  /** Settled beyond what was held. */
  readonly overrun: number;
  readonly heldBy: Series;
  readonly settledBy: Series;
  readonly overrunBy: Series;
  /** Of one rule alone (`?rule=`), where the store answers; the rule's own keys first, then those of overrides. */
  readonly learned?: readonly LearnedView[];
}

export interface LearnedView {
  /** "" for the rule's keys; else a digest of what the override matches. */
  readonly keyClass: string;
  /** How many settled costs it rests on. */
  readonly requests: number;
  readonly quantile: number;
  readonly default: number;
  /** Absent while too little is known: `default` is held then. */
  readonly learned?: number;
  readonly p50?: number;
  readonly p90?: number;
  readonly p99?: number;
}

export interface ModelView {
  /** As the price table lists it, else as calls named it; `(other)` for the rest. */
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
}
