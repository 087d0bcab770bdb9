/** How far requests with too many descriptors are decoded. For all others see `decode-request.test.ts`. */
import { expect, test } from "vitest";
import { loadProto } from "./load-proto.js";
import { MOST_DESCRIPTORS, MOST_ENTRIES } from "./message-bounds.js";
import { MALFORMED, rateLimitService } from "./message-codec.js";
import type { RateLimitRequest } from "./rate-limit-messages.js";

const { requestDeserialize } = rateLimitService().ShouldRateLimit!;
const read = (bytes: Buffer) => requestDeserialize(bytes) as RateLimitRequest;
const type = loadProto(["envoy/service/ratelimit/v3/rls.proto"]).lookupType(
  "envoy.service.ratelimit.v3.RateLimitRequest",
);

const DOMAIN = Buffer.from([0x0a, 1, 0x64]);
const MEGABYTE = 2 ** 20;
/** Field 2 of the request, empty; field 1 of a descriptor, empty. */
const descriptors = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.of(0x12, 0));
const entries = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.of(0x0a, 0));
const inDescriptor = (bytes: Buffer): Buffer => {
  const varint = [];
  let length = bytes.length;
  for (; length > 127; length >>= 7) varint.push((length & 127) | 128);
  return Buffer.concat([Buffer.of(0x12, ...varint, length), bytes]);
};
/** A descriptor with `is_negative_hits`: makes protobufjs decode the request. */
const NOT_PLAIN = Buffer.from([0x12, 2, 0x20, 1]);

test.each([
  ["by hand", Buffer.alloc(0)],
  ["by protobufjs", NOT_PLAIN],
])("of a megabyte of descriptors or entries, %s, one more is read than a request may have", (_how, before) => {
  const others = before.length > 0 ? 1 : 0;
  const many = read(Buffer.concat([DOMAIN, before, descriptors(MEGABYTE / 2 - 10)]));
  expect([many.domain, many.descriptors.length]).toEqual(["d", MOST_DESCRIPTORS + 1]);
  const long = read(Buffer.concat([DOMAIN, before, inDescriptor(entries(MEGABYTE / 2 - 10)), descriptors(5)]));
  expect(long.descriptors.map((one) => one.entries.length).slice(others)).toEqual([MOST_ENTRIES + 1]);
});

test.each([
  ["by hand", Buffer.alloc(0)],
  ["by protobufjs", NOT_PLAIN],
])("requests that follow each other are counted each by itself, %s", (_how, before) => {
  const others = before.length / NOT_PLAIN.length;
  const full = Buffer.concat([
    before,
    ...Array.from({ length: MOST_DESCRIPTORS - others }, () => inDescriptor(entries(MOST_ENTRIES))),
  ]);
  for (let i = 0; i < 3; i++) {
    const request = read(Buffer.concat([full, DOMAIN]));
    expect([request.domain, request.descriptors.length]).toEqual(["d", MOST_DESCRIPTORS]);
    expect(request.descriptors.every((one, at) => one.entries.length === (at < others ? 0 : MOST_ENTRIES))).toBe(true);
    expect(read(Buffer.concat([before, descriptors(MOST_DESCRIPTORS + 5)])).descriptors).toHaveLength(
      MOST_DESCRIPTORS + 1,
    );
    expect(read(Buffer.concat([before, Buffer.of(0x12, 9)]))).toBe(MALFORMED);
  }
});

test("a request with every field decodes as before", () => {
  const given = {
    domain: "d",
    hitsAddend: 3,
    descriptors: [
      { entries: [{ key: "a", value: "b" }], limit: { requestsPerUnit: 5, unit: 1 }, hitsAddend: { value: 7 } },
      { entries: [{ key: "c", value: "d" }], isNegativeHits: true },
    ],
  };
  const bytes = Buffer.from(type.encode(type.fromObject(given)).finish());
  expect(JSON.parse(JSON.stringify(read(bytes)))).toEqual(JSON.parse(JSON.stringify(type.decode(bytes))));
});
