import { expect, test } from "vitest";
import { verdict } from "../algorithms/model.js";
import type { Policy } from "../algorithms/policy.js";
import type { Check } from "../check.js";
import { NEVER_MS, type Reason } from "../decision.js";
import { Decision } from "../limiter/decision.js";
import { problemOf, refusalStatus } from "./problem.js";

const windowed: Policy = { stored: "fixed-window", limit: 10, windowMs: 90_000 };

function refusal(reason: Reason, retryAfterMs = 1_400, policy: Policy = windowed): Decision {
  const check = {
    key: "k",
    cost: 1,
    live: -1,
    plan: { rule: "r", mode: "enforce", variant: undefined, policy },
  } as unknown as Check;
  const request = { checks: [check], charge: true, entryId: "", id: undefined, fingerprint: "", rulesVersion: 1 };
  const reply = { nowMs: 0, verdicts: [verdict(false, 0, retryAfterMs, 0, reason)], guarantee: "atomic" as const };
  return new Decision({ request, reply, charger: "store", lease: undefined, degraded: undefined });
}

test.each([
  ["limit", 'The quota of "r" (10 per 90s) is used up. Try again in 2 s.'],
  ["min-interval", 'Requests under "r" follow each other too closely. Try again in 2 s.'],
  ["concurrency", 'All 10 places of "r" are taken. Try again in 2 s.'],
  ["store-unavailable", 'The quota of "r" cannot be checked at the moment. Try again in 2 s.'],
] as const)("%s is explained in a sentence", (reason, detail) => {
  expect(problemOf(refusal(reason)).detail).toBe(detail);
});

test("a cost that never fits states that no wait helps, and keeps NEVER_MS", () => {
  expect(problemOf(refusal("cost-exceeds-limit", NEVER_MS))).toMatchObject({
    detail: 'The request costs more than "r" ever allows at once. No wait helps.',
    retryAfterMs: NEVER_MS,
    "violated-policies": ["r"],
  });
});

test("an outage is a 503 with its own type; every other refusal is a 429", () => {
  expect(refusalStatus(refusal("store-unavailable"))).toBe(503);
  expect(problemOf(refusal("store-unavailable")).type).toMatch(/#temporary-reduced-capacity$/);
  expect(refusalStatus(refusal("limit"))).toBe(429);
  expect(problemOf(refusal("limit")).type).toMatch(/#quota-exceeded$/);
});

test("a rule without a window is described by its limit alone", () => {
  const places: Policy = { stored: "concurrency", limit: 3, ttlMs: 1_000 };
  expect(problemOf(refusal("limit", 1_000, places)).detail).toContain('"r" (3) is used up');
});
