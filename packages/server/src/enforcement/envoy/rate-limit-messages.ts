/** The messages of `envoy.service.ratelimit.v3`, as exchanged over gRPC and `/json`. */
import type { StructMessage } from "./struct-message.js";

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RateLimitDescriptor[];
  readonly hitsAddend: number;
}

export interface RateLimitDescriptor {
  readonly entries: readonly { readonly key: string; readonly value: string }[];
  readonly limit?: { readonly requestsPerUnit: number; readonly unit: number } | null | undefined;
  /** Absent: the request's own. 64-bit values may be objects with a `toString`. */
  readonly hitsAddend?: { readonly value: string | number | { toString(): string } } | null | undefined;
  readonly isNegativeHits: boolean;
}

export const codes = { ok: 1, overLimit: 2 } as const;
type Code = (typeof codes)[keyof typeof codes];

export const codeNames: Readonly<Record<Code, string>> = { 1: "OK", 2: "OVER_LIMIT" };

/** The response's units, by enum number. */
export const unitNames = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"] as const;

export interface DescriptorStatus {
  code: Code;
  currentLimit?: { requestsPerUnit: number; unit: number; name: string };
  limitRemaining: number;
  durationUntilReset?: { seconds: number; nanos: number };
}

export interface RateLimitResponse {
  overallCode: Code;
  statuses: DescriptorStatus[];
  responseHeadersToAdd: { key: string; value: string }[];
  rawBody?: Buffer;
  dynamicMetadata?: StructMessage;
  /** Not serialised: releases the places that the request holds, if its client has gone. */
  abandon?: () => void;
}

/** Whether any descriptor matched a limit, including an unlimited one. */
export function hasLimit({ overallCode, statuses }: RateLimitResponse): boolean {
  if (overallCode !== codes.ok) return true;
  return statuses.some(({ currentLimit, limitRemaining }) => currentLimit !== undefined || limitRemaining > 0);
}
