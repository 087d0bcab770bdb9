/**
 * `sluice`: the library's public entry. Names on this page are stable; everything else is free to change.
 */
export type {
  CheckMode,
  CheckResult,
  DecisionSummary,
  Degraded,
  Guarantee,
  Reason,
  Reservation,
  Settlement,
} from "./decision.js";
export { NEVER_MS } from "./decision.js";
export { type ErrorCode, type Mistake, SluiceError } from "./errors.js";
export { readCounterKey, ruleOfKey } from "./keys.js";
export type { AdaptiveStats, LimitMove } from "./limiter/adaptive-limits.js";
export type { AcquireOptions, CheckOptions, CheckPart, DecidedRequest } from "./limiter/check-request.js";
export type { Decision } from "./limiter/decision.js";
export type { ExplainedRule, Explanation } from "./limiter/explain.js";
export type { Lease } from "./limiter/lease.js";
export { createLimiter, type Limiter } from "./limiter/limiter.js";
export type { LimiterEvents } from "./limiter/limiter-events.js";
export type { UtilisationOptions } from "./limiter/limiter-operations.js";
export type { LimiterOptions } from "./limiter/limiter-options.js";
export { ruleBook } from "./limiter/rules-in-force.js";
export type { WaitingKey, WaitingStats } from "./limiter/waits.js";
export type { PrefetchStats } from "./prefetch/prefetch.js";
export type { RegionStats } from "./regions/home-fetches.js";
export type { LearnedCosts } from "./reservations/estimates.js";
export type { ReservationStats, ReservedUnits } from "./reservations/reservation-counts.js";
export type { ExplainedEstimate } from "./reservations/reservations.js";
export type {
  Adapt,
  AdaptSignal,
  AlgorithmName,
  Attributes,
  AttributeValue,
  Candidate,
  CountingRule,
  Duration,
  Estimate,
  FailurePolicy,
  LoadSignal,
  Match,
  MatchValue,
  Override,
  RollingStorage,
  Rule,
  RuleDocument,
  RuleMode,
  SheddingRule,
  Variant,
} from "./rules/rule.js";
export type { RuleBook } from "./rules/rule-book.js";
export { ruleJsonSchema, rulesDocumentJsonSchema } from "./rules/rule-json-schema.js";
export { fullRuleKeyBytes } from "./rules/rule-memory.js";
export { invalidRules, parseRules, parseRulesInSlices, validateRules } from "./rules/validate-rules.js";
export type { SheddingClass, SheddingStats } from "./shedding/load-shedder.js";
export type { MemoryUse } from "./store/memory/memory-limit.js";
export { type MemoryStore, memoryStore } from "./store/memory/memory-store.js";
export type { Clock, MemoryStoreOptions } from "./store/memory/memory-store-options.js";
export type { BlockedKey, Store } from "./store/store.js";
export type { BreakerState, Spread, StoreStats } from "./store/store-stats.js";
