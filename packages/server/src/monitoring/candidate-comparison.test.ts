import type { CheckResult, Rule } from "sluice";
import { expect, test } from "vitest";
import { Comparisons, comparisonNames, comparisonSeries, isComparison } from "./candidate-comparison.js";

const ruleOf = (id: string, limit = 10): Rule => ({
  id,
  key: ["user"],
  algorithm: "rolling-window",
  limit,
  window: "1s",
  candidate: { limit: 5 },
});
const check = (mode: CheckResult["mode"], allowed: boolean, rule = "a"): CheckResult => ({
  rule,
  mode,
  allowed,
  limit: 10,
  remaining: 0,
  retryAfterMs: 0,
  resetAfterMs: 0,
});

function countsOf(comparisons: Comparisons, rule: Rule): Record<string, number> | undefined {
  const cells = new Map(comparisons.read()).get(comparisonSeries(rule)!);
  return cells && Object.fromEntries(comparisonNames.map((name, i) => [name, cells[i]!]));
}

test("each pair of verdicts is counted in its own cell", () => {
  const rule = ruleOf("a");
  const comparisons = new Comparisons({ rules: [rule] });
  const pairs = [
    [true, true],
    [false, false],
    [false, false],
    [false, true],
    [true, false],
  ] as const;
  for (const [live, candidate] of pairs) {
    const checks = [check("enforce", live), check("candidate", candidate)];
    comparisons.add(checks[1]!, checks);
  }
  expect(countsOf(comparisons, rule)).toEqual({
    bothAllowed: 1,
    bothRefused: 2,
    onlyLiveRefused: 1,
    onlyCandidateRefused: 1,
  });
});

test("a shadow rule counts as the live side too; a candidate without its live check is not counted", () => {
  const rule = ruleOf("a");
  const comparisons = new Comparisons({ rules: [rule] });
  const candidate = check("candidate", true);
  comparisons.add(candidate, [check("shadow", false), candidate]);
  comparisons.add(candidate, [check("enforce", false, "b"), candidate]);
  expect(countsOf(comparisons, rule)).toMatchObject({ onlyLiveRefused: 1, bothAllowed: 0, bothRefused: 0 });
});

test("a series identifies the rule's numbers: description and field order do not matter, any number does", () => {
  const rule = ruleOf("a");
  const { id, ...rest } = rule;
  expect(comparisonSeries({ ...rest, id, description: "other" })).toBe(comparisonSeries(rule));
  expect(comparisonSeries(ruleOf("a", 11))).not.toBe(comparisonSeries(rule));
  expect(comparisonSeries({ ...rule, candidate: { limit: 6 } })).not.toBe(comparisonSeries(rule));
  const { candidate: _, ...plain } = rule;
  expect(comparisonSeries(plain)).toBeUndefined();
  expect([comparisonSeries(rule)!, "rule:total", "a"].map(isComparison)).toEqual([true, false, false]);
});

test("a changed rule starts a new series, and the earlier one keeps its counts", () => {
  const limiter = { rules: [ruleOf("a")] };
  const comparisons = new Comparisons(limiter);
  const checks = [check("enforce", true), check("candidate", true)];
  comparisons.add(checks[1]!, checks);
  const [before] = limiter.rules;
  limiter.rules = [ruleOf("a", 20)];
  comparisons.add(checks[1]!, checks);
  comparisons.add(checks[1]!, checks);
  expect(countsOf(comparisons, before!)).toMatchObject({ bothAllowed: 1 });
  expect(countsOf(comparisons, limiter.rules[0]!)).toMatchObject({ bothAllowed: 2 });
});

test("at most 200 candidates are compared, and 400 series kept, including those in force", () => {
  const limiter = { rules: Array.from({ length: 250 }, (_, i) => ruleOf(`r${i}`)) };
  const comparisons = new Comparisons(limiter);
  const add = () => {
    const checks = [check("enforce", true, "r0"), check("candidate", true, "r0")];
    comparisons.add(checks[1]!, checks);
  };
  add();
  expect([...comparisons.read()]).toHaveLength(200);
  for (let limit = 11; limit <= 14; limit++) {
    limiter.rules = Array.from({ length: 200 }, (_, i) => ruleOf(`r${i}`, limit));
    add();
  }
  const series = [...comparisons.read()].map(([name]) => name);
  expect(series).toHaveLength(400);
  for (const rule of limiter.rules) expect(series).toContain(comparisonSeries(rule));
});
