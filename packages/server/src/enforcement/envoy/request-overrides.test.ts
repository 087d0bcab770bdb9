import { type Rule, ruleBook } from "sluice";
import { expect, test } from "vitest";
import type { Unit } from "./descriptor-config.js";
import { MOST_OVERRIDES, RequestOverrides } from "./request-overrides.js";

const override = (unit: Unit, requestsPerUnit: number) => ({ unit, requestsPerUnit, ruleId: "rule", quota: false });

function counted() {
  let compiled = 0;
  const overrides = new RequestOverrides((rules: readonly Rule[]) => {
    compiled += rules.length;
    return ruleBook(rules);
  });
  return { overrides, compiled: () => compiled };
}

test("a limit carried by requests is compiled once", () => {
  const { overrides, compiled } = counted();
  for (let round = 0; round < 3; round++) {
    for (let limit = 1; limit <= 500; limit++) overrides.bookOf(override("minute", limit));
  }
  expect(compiled()).toBe(500);
  expect(overrides.bookOf(override("minute", 7)).rules).toMatchObject([{ limit: 7, window: "60s" }]);
  expect(overrides.bookOf(override("hour", 7)).rules).toMatchObject([{ limit: 7, window: "3600s" }]);
});

test("beyond the bound the least recently used limit is evicted", () => {
  const { overrides, compiled } = counted();
  for (let limit = 1; limit <= 3 * MOST_OVERRIDES; limit++) {
    overrides.bookOf(override("day", limit));
    overrides.bookOf(override("day", 1));
  }
  expect(compiled()).toBe(3 * MOST_OVERRIDES);
  overrides.bookOf(override("day", 2));
  expect(compiled()).toBe(3 * MOST_OVERRIDES + 1);
});
