import { createLimiter, type Rule } from "sluice";
import { expect, test, vi } from "vitest";
import { observeTraffic } from "./traffic.js";

const RULES = 10_000;
const CHECKS = 200;

const ruleAt = (i: number, key = "user"): Rule => ({
  id: `rule-${i}`,
  match: { path: `/p${i}` },
  key: [key],
  algorithm: "fixed-window",
  limit: 10,
  window: "1h",
});

test("counting long keys looks a rule up once among ten thousand, not per key", async () => {
  const limiter = createLimiter({ rules: Array.from({ length: RULES }, (_, i) => ruleAt(i)) });
  observeTraffic(limiter, { isCounted: true });
  const find = vi.spyOn(Array.prototype, "find");
  for (let i = 0; i < CHECKS; i++) await limiter.check({ path: `/p${RULES - 1}`, user: `${i}`.padEnd(300, "x") });
  const searches = find.mock.contexts.filter((searched) => searched === limiter.rules).length;
  find.mockRestore();
  expect(searches).toBe(1);
  await limiter.close();
});

test("a rule with a changed key attribute is shown by the new one", async () => {
  const limiter = createLimiter({ rules: [ruleAt(0)] });
  const { topKeys } = observeTraffic(limiter, { isCounted: true });
  await limiter.check({ path: "/p0", user: "u".repeat(300), team: "t".repeat(300) });
  await limiter.swapRules([ruleAt(0, "team")], 2);
  await limiter.check({ path: "/p0", user: "u".repeat(300), team: "t".repeat(300) });
  const shown = topKeys.quarter().traffic.items.map(({ attributes }) => Object.keys(attributes ?? {}));
  expect(shown).toEqual([["user"], ["team"]]);
  await limiter.close();
});
