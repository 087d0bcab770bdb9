import { expect, test } from "vitest";
import { metadataOf } from "./dynamic-metadata.js";
import type { RateLimitRequest } from "./rate-limit-messages.js";
import type { Asked } from "./should-rate-limit.js";

const request = {
  domain: "d",
  hitsAddend: 0,
  descriptors: [
    { entries: [{ key: "user", value: "42" }], limit: { requestsPerUnit: 5, unit: 2 }, hitsAddend: { value: 3 } },
  ],
} as unknown as RateLimitRequest;
const asked = (metadata: unknown, allowed = true) =>
  ({ limit: { kind: "placed", placed: { metadata } }, check: { allowed } }) as unknown as Asked;

test("descriptors are described as in the reference, including request limits and their own hits", () => {
  expect(metadataOf(request, [])).toEqual({
    domain: "d",
    descriptors: [{ entries: ["user=42"], limit: "requests_per_unit:5 unit:MINUTE", hitsAddend: 3 }],
  });
  expect(metadataOf({ ...request, hitsAddend: 2 }, [])).toMatchObject({ hitsAddend: 2 });
});

test("metadata of the descriptors that passed is merged; the first to set a field wins", () => {
  const merged = metadataOf(request, [
    asked({ plan: "free", nested: { a: 1 } }),
    asked({ plan: "paid", nested: { a: 2, b: 3 } }),
    asked({ refused: true }, false),
  ]);
  expect(merged.metadata).toEqual({ plan: "free", nested: { a: 1, b: 3 } });
});

test("the file's own objects are not changed by merging, and no name reaches a prototype", () => {
  const first = { nested: { a: 1 } };
  const hostile = JSON.parse('{"__proto__": {"polluted": true}, "nested": {"b": 2}}');
  const { metadata } = metadataOf(request, [asked(first), asked(hostile)]);
  expect(first).toEqual({ nested: { a: 1 } });
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  expect(Object.keys(metadata as object)).toEqual(["nested", "__proto__"]);
});
