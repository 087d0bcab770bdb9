import { expect, test } from "vitest";
import { verdict } from "../algorithms/model.js";
import { compileRuleBook } from "../rules/rule-book.js";
import { longestWaitOf, tooManyWaiting, waitingAtMost } from "./waiting-at-most.js";

const book = compileRuleBook(
  [
    { id: "paced", key: [], algorithm: "gcra", limit: 1, window: "1s", maxWait: "2s" },
    { id: "plain", key: [], algorithm: "gcra", limit: 1, window: "1s" },
  ],
  1,
);

test("only rules that would wait longer are changed, and the same plan each time", () => {
  const checks = book.checks({}, 1);
  for (const mostMs of [0, 500, 1_999]) {
    const [first, second] = [waitingAtMost(checks, mostMs), waitingAtMost(checks, mostMs)];
    expect(first[0]!.plan.policy).toMatchObject({ maxWaitMs: 2_000, callerWaitsMs: mostMs });
    expect(first[0]!.plan).toBe(second[0]!.plan);
    expect(first[1]).toBe(checks[1]);
  }
  for (const mostMs of [2_000, Number.POSITIVE_INFINITY]) expect(waitingAtMost(checks, mostMs)).toBe(checks);
});

test("by default a caller waits as long as its rules allow, and never longer than it allows itself", () => {
  expect([{}, { wait: false, maxWaitMs: 5 }, { maxWaitMs: 5 }, { wait: true }].map(longestWaitOf)).toEqual([
    Number.POSITIVE_INFINITY,
    0,
    5,
    Number.POSITIVE_INFINITY,
  ]);
  for (const maxWaitMs of [-1, Number.NaN, "5" as unknown as number])
    expect(() => longestWaitOf({ maxWaitMs })).toThrow("maxWaitMs: expected milliseconds");
});

test("a refusal reports too many waiting only if a turn would have been near enough", () => {
  const checks = book.checks({}, 1);
  const refusals = (waitMs: number) => checks.map(() => verdict(false, 0, waitMs, waitMs, "limit"));
  const reasons = (waitMs: number) =>
    tooManyWaiting({ nowMs: 0, verdicts: refusals(waitMs), guarantee: "atomic" }, checks).verdicts.map((v) => v.reason);
  expect(reasons(2_000)).toEqual(["too-many-waiting", "limit"]);
  expect(reasons(2_001)).toEqual(["limit", "limit"]);
});
