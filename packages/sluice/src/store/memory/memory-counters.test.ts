import { expect, test } from "vitest";
import { models } from "../../algorithms/models.js";
import type { Check } from "../../check.js";
import type { Rule } from "../../rules/rule.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { CounterMap } from "./counter-map.js";
import { MemoryCounters } from "./memory-counters.js";

const NOW_MS = 1_000_000;
const rule: Rule = { id: "r", key: [], algorithm: "fixed-window", limit: 2, window: "1s" };
const checkOf = (more: Partial<Rule> = {}): Check =>
  compileRuleBook([{ ...rule, ...more } as Rule], 1).checks({}, 1)[0]!;

function counted() {
  let added = 0;
  const counters = new MemoryCounters(new CounterMap(1e6), () => added++);
  const charge = (check: Check, nowMs: number) => {
    const { policy } = check.plan;
    const state = counters.state(check.key, nowMs) ?? models[policy.stored].fresh();
    const verdict = models[policy.stored].look(state, policy, check.cost, nowMs);
    if (verdict.allowed) counters.charge(check, { cost: check.cost, nowMs, requestId: "a" }, verdict, state);
    else {
      counters.outlive(state, verdict, nowMs);
      counters.refused(check, verdict, state, nowMs);
    }
    return verdict;
  };
  return { counters, charge, added: () => added };
}

test("a counter is added by its first charge, and lives through the millisecond of its end", () => {
  const { counters, charge, added } = counted();
  const check = checkOf();
  expect(counters.state(check.key, NOW_MS)).toBeUndefined();
  expect(charge(check, NOW_MS)).toMatchObject({ allowed: true, charged: true, remaining: 1 });
  charge(check, NOW_MS);
  expect(added()).toBe(1);
  const { endsAtMs } = counters.state(check.key, NOW_MS)!;
  expect(counters.state(check.key, endsAtMs)).toBeDefined();
  expect(counters.state(check.key, endsAtMs + 1)).toBeUndefined();
});

test.each([
  ["enforce", true],
  ["shadow", false],
] as const)("a counter that its rule (%s) has used up is marked as used up: %s", (mode, isUsedUp) => {
  const { counters, charge } = counted();
  const check = checkOf({ mode });
  for (let i = 0; i < 3; i++) charge(check, NOW_MS);
  expect(counters.state(check.key, NOW_MS)!.isUsedUp).toBe(isUsedUp);
});

test("a refusal extends a counter's life to what its rule, edited to a longer window, requires", () => {
  const { counters, charge } = counted();
  for (let i = 0; i < 2; i++) charge(checkOf(), NOW_MS);
  const before = counters.state(checkOf().key, NOW_MS)!.endsAtMs;
  const longer = { ...checkOf(), plan: checkOf({ window: "1h" }).plan };
  expect(charge(longer, NOW_MS).allowed).toBe(false);
  expect(counters.state(longer.key, NOW_MS)!.endsAtMs).toBeGreaterThan(before);
});

test("a cost that no counter could hold leaves the counter idle", () => {
  const { counters, charge } = counted();
  charge(checkOf(), NOW_MS);
  expect(charge({ ...checkOf(), cost: 3 }, NOW_MS)).toMatchObject({ allowed: false, reason: "cost-exceeds-limit" });
  expect(counters.state(checkOf().key, NOW_MS)!.isUsedUp).toBe(false);
});
