import { ruleBook } from "sluice";
import { expect, test } from "vitest";
import type { CheckLine, DecisionLine } from "../recording/recording-lines.js";
import { compareDecisions, uncertainForMs } from "./recorded-decisions.js";

const passed: CheckLine = ["r", "enforce", 1, 4, 0, 10];
const refused: CheckLine = ["r", "enforce", 0, 0, 5, 10, "limit"];

test("a different outcome is a difference, a different count or wait is other numbers", () => {
  expect(compareDecisions([passed], [[...passed]])).toBe("none");
  expect(compareDecisions([passed], [refused])).toBe("differences");
  expect(compareDecisions([passed], [])).toBe("differences");
  expect(compareDecisions([refused], [["r", "enforce", 0, 0, 5, 10, "blocked"]])).toBe("differences");
  expect(compareDecisions([passed], [["r", "enforce", 1, 3, 0, 10]])).toBe("otherNumbers");
  expect(compareDecisions([refused], [["r", "enforce", 0, 0, 6, 10, "limit"]])).toBe("otherNumbers");
});

test("a gap matters for twice the longest window, and for as long as an id is remembered", () => {
  const book = ruleBook([
    { id: "a", key: ["user"], algorithm: "fixed-window", limit: 1, window: "1s" },
    { id: "b", key: ["user"], algorithm: "token-bucket", limit: 10, window: "20s" },
    { id: "c", key: ["user"], algorithm: "concurrency", limit: 1, ttl: "7s" },
  ]);
  const checks = book.checks({ user: "u" }, 1);
  const line: DecisionLine = { at: 1, attributes: {}, entry: "e", rules: 1, allowed: 1, checks: [] };
  expect(uncertainForMs(checks, line)).toBe(40_000);
  expect(uncertainForMs(checks, { ...line, id: "i" })).toBe(120_000);
});
