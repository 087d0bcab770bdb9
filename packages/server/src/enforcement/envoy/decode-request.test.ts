import fc from "fast-check";
import { expect, test } from "vitest";
import { decodePlain } from "./decode-request.js";
import { loadProto } from "./load-proto.js";

const type = loadProto(["envoy/service/ratelimit/v3/rls.proto"]).lookupType(
  "envoy.service.ratelimit.v3.RateLimitRequest",
);

const anyText = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom("", "user", "remote_address", "é", "é".repeat(16), "x".repeat(32), "x".repeat(33), "x".repeat(300)),
);
const entries = fc.array(fc.record({ key: anyText, value: anyText }), { maxLength: 3 });
const plainDescriptor = fc.record({ entries });
const anyDescriptor = fc.record(
  {
    entries,
    limit: fc.record({ requestsPerUnit: fc.nat(), unit: fc.integer({ min: 0, max: 6 }) }),
    hitsAddend: fc.record({ value: fc.nat() }),
    isNegativeHits: fc.boolean(),
  },
  { requiredKeys: ["entries"] },
);
const hitsAddend = fc.integer({ min: 0, max: 0xffff_ffff });
const requestOf = (descriptor: fc.Arbitrary<object>) =>
  fc.record({ domain: anyText, descriptors: fc.array(descriptor, { maxLength: 3 }), hitsAddend });

/** The same as protobufjs decodes it: absent fields get their defaults from the prototype. */
function readByProtobufjs(bytes: Buffer): object | undefined {
  try {
    const { domain, descriptors, hitsAddend: hits } = type.decode(bytes) as unknown as Seen;
    return seen({ domain, descriptors, hitsAddend: hits });
  } catch {
    return undefined;
  }
}

interface Seen {
  domain: string;
  descriptors: {
    entries: { key: string; value: string }[];
    limit?: object | null | undefined;
    hitsAddend?: object | null | undefined;
    isNegativeHits: boolean;
  }[];
  hitsAddend: number;
}

function seen({ domain, descriptors, hitsAddend: hits }: Seen): object {
  return {
    domain,
    hits,
    descriptors: descriptors.map((one) => ({
      entries: one.entries.map(({ key, value }) => ({ key, value })),
      limit: one.limit ?? null,
      hits: one.hitsAddend ?? null,
      isNegativeHits: one.isNegativeHits,
    })),
  };
}

test("requests with entries and hits decode exactly as with protobufjs", () => {
  fc.assert(
    fc.property(requestOf(plainDescriptor), (given) => {
      const bytes = Buffer.from(type.encode(given).finish());
      const read = decodePlain(bytes);
      expect(read).toBeDefined();
      expect(seen(read as Seen)).toEqual(readByProtobufjs(bytes));
    }),
    { numRuns: 2_000 },
  );
});

test("any request with other fields is left to protobufjs", () => {
  fc.assert(
    fc.property(requestOf(anyDescriptor), (given) => {
      const bytes = Buffer.from(type.encode(given).finish());
      const read = decodePlain(bytes);
      if (read !== undefined) expect(seen(read as Seen)).toEqual(readByProtobufjs(bytes));
      const { descriptors } = given as unknown as Seen;
      const hasMore = descriptors.some((one) => one.limit !== undefined || one.hitsAddend !== undefined);
      if (hasMore) expect(read).toBeUndefined();
    }),
    { numRuns: 2_000 },
  );
});

test("truncated, mutated or random bytes are never accepted where protobufjs fails, nor read differently", () => {
  let read = 0;
  const damaged = fc.tuple(requestOf(anyDescriptor), fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 }));
  const check = (bytes: Buffer): void => {
    const plain = decodePlain(bytes);
    if (plain === undefined) return;
    read++;
    expect(seen(plain as Seen)).toEqual(readByProtobufjs(bytes));
  };
  fc.assert(
    fc.property(damaged, ([given, cut, at, byte]) => {
      const bytes = Buffer.from(type.encode(given).finish());
      check(bytes.subarray(0, cut % (bytes.length + 1)));
      if (bytes.length > 0) bytes[at % bytes.length] = byte;
      check(bytes);
    }),
    { numRuns: 5_000 },
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 24 }), (bytes) => check(Buffer.from(bytes))),
    { numRuns: 5_000 },
  );
  expect(read).toBeGreaterThan(500);
});
