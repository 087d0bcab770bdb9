import fc from "fast-check";
import { expect, test } from "vitest";
import type { Check } from "../../check.js";
import type { Reason } from "../../decision.js";
import { decodeRecord, spellReceipt, spellVerdicts } from "./wire.js";

const whole = fc.integer({ min: 0, max: 2 ** 53 - 1 });
const passed = fc.record({
  allowed: fc.constant(true),
  remaining: fc.integer({ min: -(2 ** 53) + 1, max: 2 ** 53 - 1 }),
  retryAfterMs: fc.constant(0),
  resetAfterMs: whole,
  reason: fc.constant(undefined),
  charged: fc.boolean(),
  delayMs: fc.constant(0),
});
const refused = fc.record({
  allowed: fc.constant(false),
  remaining: whole,
  retryAfterMs: whole,
  resetAfterMs: whole,
  reason: fc.constantFrom<Reason>("limit", "min-interval", "concurrency", "cost-exceeds-limit"),
  // A charge is counted and only reported as refused.
  charged: fc.boolean(),
  delayMs: fc.constant(0),
});
const check = fc.record({
  plan: fc.record({
    rule: fc.string(),
    mode: fc.constantFrom("enforce", "shadow", "candidate"),
    policy: fc.record({ stored: fc.constant("fixed-window"), limit: whole, windowMs: whole }),
    keyEnd: fc.string({ unit: "binary" }),
    onStoreFailure: fc.constant("local"),
    maxWaitMs: fc.constantFrom(0, 500),
  }),
  key: fc.string({ unit: "binary" }),
  cost: whole,
  live: fc.integer({ min: -1, max: 9 }),
}) as unknown as fc.Arbitrary<Check>;

test("what is written into the record of a request id can be read back, whatever the verdicts and keys", () => {
  const judged = fc.array(fc.tuple(check, fc.oneof(passed, refused)), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(judged, whole, whole, (pairs, nowMs, rulesVersion) => {
      const checks = pairs.map(([asked]) => asked);
      const verdicts = pairs.map(([{ plan }, found], i) => ({
        ...found,
        delayMs: plan.maxWaitMs > 0 ? i : 0,
        ...(found.charged && found.remaining % 2 === 1 && { given: found.remaining }),
      }));
      const request = { checks, charge: true, entryId: "e1", id: "i", fingerprint: "f", rulesVersion };
      const numbers = spellVerdicts({ nowMs, verdicts, guarantee: "atomic" }, checks);
      const record = `3 f e1 e1\n${numbers}\n${spellReceipt(request)}`;
      expect(decodeRecord(record, 7)).toEqual({
        nowMs,
        verdicts,
        guarantee: "atomic",
        repeated: { entryId: "e1", rulesVersion, checks, atMs: 7 },
      });
    }),
  );
});

test("a record of an unknown layout is not read", () => {
  expect(() => decodeRecord("2 f e1 e1\n1 3 9 0\n{}", 0)).toThrow("unknown layout");
});
