import type { CheckResult, Decision } from "sluice";
import { expect, test } from "vitest";
import { additionTo } from "./response-fields.js";
import type { Asked } from "./should-rate-limit.js";

/** A used-up override quota that resets after `retryAfterMs`. */
function usedUp(i: number, retryAfterMs: number): Asked {
  const check = { rule: `quota-${i}-${"x".repeat(50)}`, allowed: false, limit: 10, retryAfterMs } as CheckResult;
  return { limit: { kind: "override", override: { unit: "minute" } }, check } as unknown as Asked;
}

function policyOf(asked: readonly Asked[]): string {
  const decision = { allowed: true } as Decision;
  const { headers } = additionTo({ decision, asked, statuses: [], quotaUsedUp: true, option: "standard" });
  return headers.find(({ key }) => key === "RateLimit-Policy")!.value;
}

test("used-up quotas are listed in order; of very many only those that fit, the first to reset first", () => {
  const few = Array.from({ length: 3 }, (_, i) => usedUp(i, 9_000 - i));
  expect(policyOf(few).match(/quota-\d+/g)).toEqual(["quota-0", "quota-1", "quota-2"]);
  const many = policyOf(Array.from({ length: 500 }, (_, i) => usedUp(i, 9_000 - i)));
  expect(many.match(/quota-\d+/g)!.slice(0, 2)).toEqual(["quota-499", "quota-0"]);
  expect(many.length).toBeLessThanOrEqual(1_024);
});
