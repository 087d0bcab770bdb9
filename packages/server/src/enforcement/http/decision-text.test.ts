import fc from "fast-check";
import fastJson from "fast-json-stringify";
import type { Decision } from "sluice";
import { expect, test } from "vitest";
import { decisionText } from "./decision-text.js";
import { decision } from "./schemas.js";

const spell = fastJson(decision as never) as (made: unknown) => string;

const whole = fc.oneof(fc.nat(), fc.constantFrom(0, 2 ** 31 - 1, 1_000_000_000_000, Number.MAX_SAFE_INTEGER));
const name = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/);
const reason = fc.constantFrom("limit", "min-interval", "concurrency", "cost-exceeds-limit", "store-unavailable");
const numbers = { limit: whole, remaining: whole, retryAfterMs: whole, resetAfterMs: whole };
const check = fc.record(
  {
    rule: name,
    mode: fc.constantFrom("enforce", "shadow", "candidate"),
    allowed: fc.boolean(),
    ...numbers,
    debt: whole,
    reason,
    variant: name,
    delayMs: whole,
  },
  { requiredKeys: ["rule", "mode", "allowed", "limit", "remaining", "retryAfterMs", "resetAfterMs"] },
);
const lease = fc.record({ id: fc.stringMatching(/^[\w.-]{10,60}$/), expiresAfterMs: whole });
const reservation = fc.record({
  id: fc.stringMatching(/^[\w.-]{10,60}$/),
  expiresAfterMs: whole,
  held: fc.dictionary(name, whole, { maxKeys: 3 }),
});
const shared = {
  allowed: fc.boolean(),
  retryAfterMs: whole,
  resetAfterMs: whole,
  delayMs: whole,
  violated: fc.array(name, { maxLength: 3 }),
  rulesVersion: whole,
  guarantee: fc.constantFrom("atomic", "compensated", "prefetched"),
  checks: fc.array(check, { maxLength: 4 }),
};
const required = Object.keys(shared) as (keyof typeof shared)[];
const optional = { reason, debt: whole, lease, reservation, degraded: fc.constantFrom("deny", "local", "allow") };
const made = fc.oneof(
  fc.record({ ...shared, ...optional }, { requiredKeys: required }),
  fc.record(
    { ...shared, ...optional, rule: name, limit: whole, remaining: whole },
    { requiredKeys: [...required, "rule", "limit", "remaining"] },
  ),
);

test("the text equals the schema's serialisation for any decision", () => {
  fc.assert(
    fc.property(made, (one) => {
      const text = decisionText(one as unknown as Decision);
      expect(JSON.parse(text)).toEqual(JSON.parse(spell(one)));
    }),
    { numRuns: 1_000 },
  );
});
