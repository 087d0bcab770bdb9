import { createLimiter, type Rule } from "sluice";
import { expect, test } from "vitest";
import { observeTraffic } from "./traffic.js";

const RULES = 10_000;
const CHECKS = 2_000;

const ruleAt = (i: number, key = "user"): Rule => ({
  id: `rule-${i}`,
  match: { path: `/p${i}` },
  key: [key],
  algorithm: "fixed-window",
  limit: 10,
  window: "1h",
});

test("counting a long key costs the same for the last of ten thousand rules as for the first", async () => {
  const limiter = createLimiter({ rules: Array.from({ length: RULES }, (_, i) => ruleAt(i)) });
  observeTraffic(limiter, { isCounted: true });
  const msOf = async (rule: number, round: string): Promise<number> => {
    const sinceMs = performance.now();
    for (let i = 0; i < CHECKS; i++)
      await limiter.check({ path: `/p${rule}`, user: `${round}-${rule}-${i}`.padEnd(300, "x") });
    return performance.now() - sinceMs;
  };
  const first: number[] = [];
  const last: number[] = [];
  for (const round of ["a", "b", "c", "d"]) {
    first.push(await msOf(0, round));
    last.push(await msOf(RULES - 1, round));
  }
  await limiter.close();
  expect(Math.min(...last)).toBeLessThan(3 * Math.min(...first));
});

test("a rule that counts by another attribute from now on is shown by that one", async () => {
  const limiter = createLimiter({ rules: [ruleAt(0)] });
  const { topKeys } = observeTraffic(limiter, { isCounted: true });
  await limiter.check({ path: "/p0", user: "u".repeat(300), team: "t".repeat(300) });
  await limiter.swapRules([ruleAt(0, "team")], 2);
  await limiter.check({ path: "/p0", user: "u".repeat(300), team: "t".repeat(300) });
  const shown = topKeys.quarter().traffic.items.map(({ attributes }) => Object.keys(attributes ?? {}));
  expect(shown).toEqual([["user"], ["team"]]);
  await limiter.close();
});
