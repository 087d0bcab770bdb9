/**
 * The messages of `envoy.service.rate_limit_quota.v3`, and how to encode an assignment so that Envoy does what is meant.
 *
 * An assignment is a token bucket that never refills: a number of requests within a TTL. Envoy 1.40 reads whole seconds only. A bucket that
 * replaces another inherits its fill level; after a DENY_ALL in the same message it starts full, and no request sees the DENY_ALL, as the
 * actions of a message take effect together. Sending the same bucket again keeps its tokens and extends its TTL.
 */
import type { MethodDefinition } from "@grpc/grpc-js";
import { loadProto } from "../load-proto.js";
import { MALFORMED, methodOf } from "../message-codec.js";

const QUOTA_SERVICE = "envoy.service.rate_limit_quota.v3.RateLimitQuotaService";
export const QUOTA_PATH = `/${QUOTA_SERVICE}/StreamRateLimitQuotas`;

export interface BucketId {
  readonly bucket: Readonly<Record<string, string>>;
}

type Count = number | { toString(): string };

export interface UsageReports {
  readonly domain: string;
  readonly bucketQuotaUsages: readonly {
    readonly bucketId?: BucketId | null;
    readonly numRequestsAllowed: Count;
    readonly numRequestsDenied: Count;
  }[];
}

type Strategy = { blanketRule: 0 | 1 } | { tokenBucket: object };

export interface BucketAction {
  readonly bucketId: BucketId;
  readonly quotaAssignmentAction?: { assignmentTimeToLive: { seconds: number }; rateLimitStrategy: Strategy };
  readonly abandonAction?: object;
}

export interface QuotaResponse {
  readonly bucketAction: readonly BucketAction[];
}

export { MALFORMED };

const ALLOW_ALL: Strategy = { blanketRule: 0 };
const DENY_ALL: Strategy = { blanketRule: 1 };
/** The slowest refill that Envoy supports: nothing comes back within any TTL. */
const YEAR_SECONDS = 31_536_000;
const MOST_TOKENS = 0xffff_ffff;

export function quotaMethod(): MethodDefinition<unknown, QuotaResponse> {
  const root = loadProto(["envoy/service/rate_limit_quota/v3/rlqs.proto"]);
  const type = (name: string) => root.lookupType(`envoy.service.rate_limit_quota.v3.${name}`);
  return {
    ...methodOf<QuotaResponse>(QUOTA_PATH, {
      request: type("RateLimitQuotaUsageReports"),
      response: type("RateLimitQuotaResponse"),
      responseStream: true,
    }),
    requestStream: true,
  };
}

function assignment(bucketId: BucketId, seconds: number, rateLimitStrategy: Strategy): BucketAction {
  return { bucketId, quotaAssignmentAction: { assignmentTimeToLive: { seconds }, rateLimitStrategy } };
}

function tokens(units: number): Strategy {
  const maxTokens = Math.min(units, MOST_TOKENS);
  return { tokenBucket: { maxTokens, tokensPerFill: { value: 1 }, fillInterval: { seconds: YEAR_SECONDS } } };
}

export const spellAction = {
  allowAll: (id: BucketId, seconds: number): BucketAction[] => [assignment(id, seconds, ALLOW_ALL)],
  denyAll: (id: BucketId, seconds: number): BucketAction[] => [assignment(id, seconds, DENY_ALL)],
  /** Assigns a full bucket, regardless of the previous one. */
  units: (id: BucketId, seconds: number, units: number): BucketAction[] => [
    assignment(id, seconds, DENY_ALL),
    assignment(id, seconds, tokens(units)),
  ],
  /** Extends the TTL of the current bucket of this size and keeps its fill level. */
  extend: (id: BucketId, seconds: number, units: number): BucketAction[] => [assignment(id, seconds, tokens(units))],
  abandon: (id: BucketId): BucketAction[] => [{ bucketId: id, abandonAction: {} }],
};

/** Converts a 64-bit count, capped: no limit is larger, and beyond 2^53 numbers lose precision. */
export function countOf(count: Count): number {
  return Math.min(Number(String(count)), 0xffff_ffff);
}

/** Canonical form: key order does not matter. */
export function spellBucketId({ bucket }: BucketId): string {
  const names = Object.keys(bucket).sort();
  return JSON.stringify(names.flatMap((name) => [name, bucket[name]]));
}
