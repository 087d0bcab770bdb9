import { expect, test } from "vitest";
import type { Check } from "../check.js";
import type { Rule } from "../rules/rule.js";
import { joinChecks } from "./join-checks.js";
import { createLimiter } from "./limiter.js";

const check = (key: string, more: Partial<Check> = {}): Check => ({ key, cost: 1, live: -1, ...more }) as Check;

test("two parts that share a counter become one check at the sum of their costs", () => {
  const { checks, places } = joinChecks([[check("a"), check("b", { cost: 2 })], [check("b", { cost: 5 })]]);
  expect(checks.map(({ key, cost }) => [key, cost])).toEqual([
    ["a", 1],
    ["b", 7],
  ]);
  expect(places).toEqual([[0, 1], [1]]);
});

test("two parts that reach one counter with different numbers are held to the tighter ones, in either order", async () => {
  const rule: Rule = {
    id: "r",
    match: { tier: "*" },
    key: ["user"],
    algorithm: "fixed-window",
    limit: 4,
    window: "1d",
    overrides: [{ match: { tier: "gold" }, limit: 1_000 }],
  };
  const gold = { attributes: { user: "ann", tier: "gold" } };
  const free = { attributes: { user: "ann", tier: "free" } };
  for (const parts of [
    [gold, free],
    [free, gold],
  ]) {
    const limiter = createLimiter({ rules: [rule] });
    const passed: boolean[] = [];
    for (let i = 0; i < 3; i++) passed.push((await limiter.checkAll(parts)).decision.allowed);
    expect(passed).toEqual([true, true, false]);
    await limiter.close();
  }
});

test("a rule that only reports does not lift the limit of an enforcing one on the same counter", () => {
  const planOf = (mode: string, limit: number) => ({ mode, policy: { stored: "fixed-window", limit } }) as never;
  const [report, enforce] = [planOf("shadow", 1), planOf("enforce", 5)];
  const joined = (plans: never[]) => joinChecks(plans.map((plan) => [check("a", { plan })])).checks[0]!.plan;
  expect(joined([report, enforce])).toBe(enforce);
  expect(joined([enforce, report])).toBe(enforce);
});

test("a charge stays separate from a check of the same counter", () => {
  const { checks, places } = joinChecks([[check("a")], [check("a", { charge: true, cost: 3 })]]);
  expect(checks.map(({ cost }) => cost)).toEqual([1, 3]);
  expect(places).toEqual([[0], [1]]);
});

test("a candidate points at its live check's index in the joined list", () => {
  const { checks } = joinChecks([[check("x")], [check("y"), check("y!", { live: 0 })]]);
  expect(checks[2]).toMatchObject({ key: "y!", live: 1 });
});

test("the given checks stay as they are", () => {
  const first = check("a");
  joinChecks([[first], [check("a")]]);
  expect(first.cost).toBe(1);
});
