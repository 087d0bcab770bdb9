import { expect, test } from "vitest";
import { MOST_UNITS, type Verdict, verdict } from "../algorithms/model.js";
import type { Check } from "../check.js";
import { NEVER_MS } from "../decision.js";
import type { StoreReply, StoreRequest } from "../store/store.js";
import { Decision } from "./decision.js";

const check = (rule: string, limit = 10, mode = "enforce"): Check =>
  ({ key: rule, cost: 1, live: -1, plan: { rule, mode, variant: undefined, policy: { limit } } }) as unknown as Check;
const request = (checks: readonly Check[]): StoreRequest => ({
  checks,
  charge: true,
  entryId: "e1",
  id: "id",
  fingerprint: "",
  rulesVersion: 7,
});

function decisionOf(checks: readonly Check[], verdicts: readonly Verdict[], more: Partial<StoreReply> = {}): Decision {
  const reply: StoreReply = { nowMs: 5, verdicts, guarantee: "atomic", ...more };
  return new Decision({ request: request(checks), reply, charger: "store", lease: undefined, degraded: undefined });
}

const passed = (remaining: number): Verdict => verdict(true, remaining, 0, 100, undefined);
const refused = (waitMs: number): Verdict => verdict(false, 0, waitMs, 100, "limit");

test("of several refusals the one with the longest wait is reported, and all are named", () => {
  const decision = decisionOf([check("a"), check("b"), check("c")], [refused(10), refused(30), passed(5)]);
  expect(decision).toMatchObject({ allowed: false, rule: "b", retryAfterMs: 30, violated: ["a", "b"] });
});

test("a refusal that no wait ends is reported before any wait, however long", () => {
  const yearly = refused(NEVER_MS + 1);
  const never = verdict(false, 0, NEVER_MS, 0, "cost-exceeds-limit");
  for (const [checks, verdicts] of [
    [
      [check("yearly"), check("never")],
      [yearly, never],
    ],
    [
      [check("never"), check("yearly")],
      [never, yearly],
    ],
  ] as const) {
    expect(decisionOf(checks, verdicts)).toMatchObject({ rule: "never", reason: "cost-exceeds-limit" });
  }
});

test("of several passes the one with the smallest remaining share is reported", () => {
  expect(decisionOf([check("a", 10), check("b", 100)], [passed(3), passed(20)]).rule).toBe("b");
});

test("a limit of 0, looked at, has no share left: it is reported before every other", () => {
  const [some, none] = [check("some"), check("none", 0)];
  expect(decisionOf([some, none], [passed(10), passed(0)]).rule).toBe("none");
  expect(decisionOf([none, some], [passed(0), passed(10)]).rule).toBe("none");
});

test("shadow and candidate checks neither refuse nor are reported", () => {
  const decision = decisionOf([check("a", 10, "shadow"), check("b", 10, "candidate")], [refused(10), refused(10)]);
  expect(decision).toMatchObject({ allowed: true, violated: [], retryAfterMs: 0 });
  expect("rule" in decision).toBe(false);
  expect(decision.checks.map(({ allowed }) => allowed)).toEqual([false, false]);
});

test("a counter past its limit has nothing remaining, and a debt", () => {
  expect(decisionOf([check("a")], [passed(-4)])).toMatchObject({ remaining: 0, debt: 4 });
  expect(decisionOf([check("a")], [passed(-(2 ** 53))]).debt).toBe(MOST_UNITS);
  expect(decisionOf([check("a")], [passed(2 ** 53)]).remaining).toBe(10);
});

test("a repeated id answers with the checks and the version of the first request", () => {
  const first = { entryId: "e0", rulesVersion: 3, checks: [check("old")], atMs: 9 };
  const decision = decisionOf([check("new")], [passed(5)], { repeated: first });
  expect(decision).toMatchObject({ rule: "old", rulesVersion: 3 });
  expect(Decision.originOf(decision)).toMatchObject({ entryId: "e0", id: "id", charger: "store", nowMs: 5 });
});

test("its fields are its JSON; its origin is not part of it", () => {
  expect(Object.keys(decisionOf([check("a")], [refused(10)]))).toEqual([
    "allowed",
    "rule",
    "limit",
    "remaining",
    "retryAfterMs",
    "resetAfterMs",
    "delayMs",
    "reason",
    "violated",
    "rulesVersion",
    "guarantee",
    "checks",
  ]);
});
