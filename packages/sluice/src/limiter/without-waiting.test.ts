import { expect, test } from "vitest";
import { verdict } from "../algorithms/model.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { tooManyWaiting, withoutWaiting } from "./without-waiting.js";

const book = compileRuleBook(
  [
    { id: "paced", key: [], algorithm: "gcra", limit: 1, window: "1s", maxWait: "2s" },
    { id: "plain", key: [], algorithm: "gcra", limit: 1, window: "1s" },
  ],
  1,
);

test("only rules with turns are changed, and the same plan each time", () => {
  const checks = book.checks({}, 1);
  const [first, second] = [withoutWaiting(checks), withoutWaiting(checks)];
  expect(first.map(({ plan }) => "noWait" in plan.policy)).toEqual([true, false]);
  expect(first[0]!.plan).toBe(second[0]!.plan);
  expect(first[1]).toBe(checks[1]);
});

test("a refusal says that too many wait only where a turn would have been near enough", () => {
  const checks = book.checks({}, 1);
  const refusals = (waitMs: number) => checks.map(() => verdict(false, 0, waitMs, waitMs, "limit"));
  const reasons = (waitMs: number) =>
    tooManyWaiting({ nowMs: 0, verdicts: refusals(waitMs), guarantee: "atomic" }, checks).verdicts.map((v) => v.reason);
  expect(reasons(2_000)).toEqual(["too-many-waiting", "limit"]);
  expect(reasons(2_001)).toEqual(["limit", "limit"]);
});
