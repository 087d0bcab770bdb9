import type { CheckResult, Decision, Rule } from "sluice";
import { expect, test } from "vitest";
import { Comparisons } from "./candidate-comparison.js";
import { DecisionCounts } from "./decision-counts.js";

const counts = (rules: readonly Rule[] = []) => new DecisionCounts(new Comparisons({ rules }));
const check = (given: Partial<CheckResult> = {}): CheckResult => ({
  rule: "a",
  mode: "enforce",
  allowed: true,
  limit: 10,
  remaining: 9,
  retryAfterMs: 0,
  resetAfterMs: 0,
  ...given,
});
const decision = (checks: readonly CheckResult[], given: Partial<Decision> = {}): Decision =>
  ({ allowed: checks.every(({ mode, allowed }) => allowed || mode !== "enforce"), checks, ...given }) as Decision;

test("a check is counted by rule, variant, mode and reason", () => {
  const all = counts();
  all.add(decision([check(), check({ mode: "shadow", allowed: false, reason: "min-interval" })]));
  all.add(decision([check({ allowed: false, reason: "limit", variant: "control" })]));
  expect([...all.read()]).toEqual([
    { rule: "a", variant: "", mode: "enforce", outcome: "allowed", reason: "", count: 1 },
    { rule: "a", variant: "", mode: "shadow", outcome: "refused", reason: "min-interval", count: 1 },
    { rule: "a", variant: "control", mode: "enforce", outcome: "refused", reason: "limit", count: 1 },
  ]);
});

test("a request is counted once, however many shadow rules refuse it; one without checks is unmatched", () => {
  const all = counts();
  const shadow = check({ mode: "shadow", allowed: false, reason: "limit" });
  all.add(decision([check(), shadow, { ...shadow, rule: "b" }]));
  all.add(decision([]));
  all.add(decision([check({ allowed: false, reason: "limit" })], { degraded: "local" }));
  expect(all.requests).toEqual({
    allowed: 2,
    refused: 1,
    shadowRefused: 1,
    unmatched: 1,
    degraded: { local: 1, allow: 0, deny: 0 },
  });
});

test("a rule's totals: a shadow check always counts as allowed, a candidate as neither allowed nor refused", () => {
  const all = counts();
  all.add(
    decision([
      check({ mode: "shadow", allowed: false, reason: "limit" }),
      check({ mode: "candidate", allowed: false }),
    ]),
  );
  all.add(decision([check({ mode: "shadow" }), check({ mode: "candidate" })]));
  const [{ use, ...totals }] = [...all.totals()] as [
    ReturnType<typeof all.totals> extends Generator<infer T> ? T : never,
  ];
  expect(totals).toEqual({
    rule: "a",
    allowed: 2,
    refused: 0,
    shadowRefused: 1,
    candidateAllowed: 1,
    candidateRefused: 1,
    turns: 0,
    waitMs: 0,
  });
  expect(use.reduce((sum, each) => sum + each, 0)).toBe(0);
});

test("utilisation is counted in tenths of the limit, a refusal in the last; not if a failure policy answered", () => {
  const all = counts();
  const useOf = () => Array.from([...all.totals()][0]!.use);
  for (const remaining of [10, 9, 5, 1, 0]) all.add(decision([check({ remaining })]));
  all.add(decision([check({ allowed: false, remaining: 0, reason: "limit" })]));
  all.add(decision([check({ remaining: 12 })]));
  expect(useOf()).toEqual([2, 1, 0, 0, 0, 1, 0, 0, 0, 3]);
  all.add(decision([check()], { degraded: "local" }));
  expect(useOf()).toEqual([2, 1, 0, 0, 0, 1, 0, 0, 0, 3]);
});

test("1000 rules, and ten variants per rule, are counted individually; the rest are counted together", () => {
  const all = counts();
  for (let i = 0; i < 1_005; i++) all.add(decision([check({ rule: `r${i}` })]));
  for (let i = 0; i < 12; i++) all.add(decision([check({ rule: "r0", variant: `v${i}` })]));
  const read = [...all.read()];
  expect(new Set(read.map(({ rule }) => rule)).size).toBe(1_001);
  expect(read.find(({ rule }) => rule === "(other)")).toMatchObject({ count: 5 });
  expect(read.find(({ rule, variant }) => rule === "r0" && variant === "(other)")).toMatchObject({ count: 2 });
});
