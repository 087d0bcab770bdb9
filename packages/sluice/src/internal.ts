/**
 * `sluice/internal`: what this repository's service shares with the library. Not for others: names here may change in any version.
 */
export type { Cluster, Redis } from "ioredis";
export type { Check } from "./check.js";
export { errorKinds } from "./errors.js";
export { type BodyKind, bodyKind, JsonDocuments } from "./http/json-documents.js";
export { JsonScanner, textOf } from "./http/json-scanner.js";
export { policyList } from "./http/rate-limit-fields.js";
export { isKeyPrefix, KEY_PREFIX_EXPECTED } from "./key-prefix.js";
export { blockKeysPattern, KEY_PREFIX, spellValues } from "./keys.js";
export { asCharges } from "./limiter/charges.js";
export { entriesFit } from "./limiter/check-input.js";
export type { CheckRequest } from "./limiter/check-request.js";
export { ClientLeft } from "./limiter/client-left.js";
export { Decision } from "./limiter/decision.js";
export { holdReservation } from "./limiter/held-reservation.js";
export { joinChecks } from "./limiter/join-checks.js";
export { Lease } from "./limiter/lease.js";
export { checkAllNow, checkLastPart, countVersionsLocally } from "./limiter/limiter.js";
export { outsideUnits, swapValidatedRules } from "./limiter/limiter-operations.js";
export { mostUnits, type OutsideUnits, unitsPerMs } from "./limiter/outside-units.js";
export { chargesOf } from "./limiter/refunds.js";
export { reservedCounters } from "./limiter/reserved-counters.js";
export { refuseGlobal } from "./regions/region-options.js";
export { parseDuration } from "./rules/duration.js";
export { nearestName } from "./rules/nearest-name.js";
export { isCounting } from "./rules/rule.js";
export { matcherOf, type RuleMatcher } from "./rules/rule-book.js";
export { sheddingClasses } from "./rules/shedding-plan.js";
export { LoadShedder } from "./shedding/load-shedder.js";
export { type Model, models, type Policy, type State, type Verdict } from "./store/memory/counter-models.js";
export { counterBytes } from "./store/memory/memory-bytes.js";
export { redisTwin } from "./store/memory/memory-store.js";
export { type ClientOptions, connectRedis } from "./store/redis/client.js";
export { startHeartbeat } from "./store/redis/heartbeat.js";
export type {
  AskedKey,
  AskedPart,
  LeaseRequest,
  MadeAt,
  MaybePromise,
  RefundRequest,
  StoreReply,
  StoreRequest,
} from "./store/store.js";
export { runAtOnce, runInSlices, type Sliced, Stride, TimeSlice } from "./time-slices.js";
