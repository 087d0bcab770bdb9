import { expect, test } from "vitest";
import type { Check } from "../check.js";
import { joinChecks } from "./join-checks.js";

const check = (key: string, more: Partial<Check> = {}): Check => ({ key, cost: 1, live: -1, ...more }) as Check;

test("two parts that meet one counter are one check at the sum of their costs", () => {
  const { checks, places } = joinChecks([[check("a"), check("b", { cost: 2 })], [check("b", { cost: 5 })]]);
  expect(checks.map(({ key, cost }) => [key, cost])).toEqual([
    ["a", 1],
    ["b", 7],
  ]);
  expect(places).toEqual([[0, 1], [1]]);
});

test("a charge stays apart from a check of the same counter", () => {
  const { checks, places } = joinChecks([[check("a")], [check("a", { charge: true, cost: 3 })]]);
  expect(checks.map(({ cost }) => cost)).toEqual([1, 3]);
  expect(places).toEqual([[0], [1]]);
});

test("a candidate points at its live check's place in the joined list", () => {
  const { checks } = joinChecks([[check("x")], [check("y"), check("y!", { live: 0 })]]);
  expect(checks[2]).toMatchObject({ key: "y!", live: 1 });
});

test("the given checks stay as they are", () => {
  const first = check("a");
  joinChecks([[first], [check("a")]]);
  expect(first.cost).toBe(1);
});
