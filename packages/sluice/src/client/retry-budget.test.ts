import { expect, test } from "vitest";
import { RetryBudget } from "./retry-budget.js";

test("retries are at most a fraction of the requests, plus the first ten", () => {
  const budget = new RetryBudget(0.1);
  let retries = 0;
  for (let i = 0; i < 1_000; i++) {
    budget.requested();
    while (budget.take()) retries++;
  }
  expect(retries).toBeGreaterThanOrEqual(108);
  expect(retries).toBeLessThanOrEqual(110);
});

test("a budget of 0 ends after the first ten", () => {
  const budget = new RetryBudget(0);
  for (let i = 0; i < 100; i++) budget.requested();
  expect(Array.from({ length: 20 }, () => budget.take()).filter(Boolean)).toHaveLength(10);
});
