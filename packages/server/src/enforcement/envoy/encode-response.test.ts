import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeResponse } from "./encode-response.js";
import { loadProto } from "./load-proto.js";
import type { RateLimitResponse } from "./rate-limit-messages.js";

const uint32 = fc.integer({ min: 0, max: 0xffff_ffff });
const anyText = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.string({ minLength: 120, maxLength: 140 }),
  fc.constantFrom("", "é".repeat(64), "x".repeat(127), "x".repeat(128), "x".repeat(20_000)),
);
const status = fc.record(
  {
    code: fc.constantFrom(1 as const, 2 as const),
    currentLimit: fc.record({ requestsPerUnit: uint32, unit: fc.integer({ min: 0, max: 7 }), name: anyText }),
    limitRemaining: uint32,
    durationUntilReset: fc.record({
      seconds: fc.oneof(uint32, fc.integer({ min: 0, max: 315_576_000_000 })),
      nanos: fc.constant(0),
    }),
  },
  { requiredKeys: ["code", "limitRemaining"] },
);
const response = fc.record(
  {
    overallCode: fc.constantFrom(1 as const, 2 as const),
    statuses: fc.array(status, { maxLength: 4 }),
    responseHeadersToAdd: fc.array(fc.record({ key: anyText, value: anyText }), { maxLength: 4 }),
    rawBody: fc.uint8Array({ minLength: 1, maxLength: 9_000 }).map((given) => Buffer.from(given)),
  },
  { requiredKeys: ["overallCode", "statuses", "responseHeadersToAdd"] },
);

const root = loadProto(["envoy/service/ratelimit/v3/rls.proto"]);
const type = root.lookupType("envoy.service.ratelimit.v3.RateLimitResponse");

test("the bytes equal protobufjs's for any numbers and strings", () => {
  fc.assert(
    fc.property(response, (given) => {
      const theirs = Buffer.from(type.encode(given).finish());
      expect(encodeResponse(given as RateLimitResponse).equals(theirs)).toBe(true);
    }),
    { numRuns: 500 },
  );
});
