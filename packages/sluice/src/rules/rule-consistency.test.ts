/** What no field shows alone; validate-rules.test.ts holds whole documents. */
import { expect, test } from "vitest";
import { runAtOnce } from "../time-slices.js";
import { Findings } from "./findings.js";
import { findingInconsistencies } from "./rule-consistency.js";

function mistakesOf(...rules: unknown[]): string[] {
  const findings = new Findings();
  runAtOnce(findingInconsistencies(rules, findings));
  return findings.list().map(({ path, message }) => `${path}: ${message}`);
}

const rule = { id: "r", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1m" };

test("a consistent rule has no mistakes", () => {
  expect(mistakesOf(rule, { ...rule, id: "s", minInterval: "1s" })).toEqual([]);
});

test("an id that is used twice is told at its second place, with its first", () => {
  expect(mistakesOf(rule, rule)).toEqual(['rules[1].id: expected a unique id, got "r", which rules[0] has']);
});

test("a key names each attribute once", () => {
  expect(mistakesOf({ ...rule, key: ["user", "user"] })[0]).toMatch(
    /^rules\[0\]\.key\[1\]: expected each attribute once/,
  );
});

test.each([
  [{ minInterval: "2m" }, "minInterval"],
  [{ algorithm: "token-bucket", minInterval: "1s" }, "minInterval"],
  [{ variants: [{ name: "a", weight: 0 }] }, "variants"],
  [{ algorithm: "concurrency", window: "1m" }, "window"],
  [{ algorithm: "fixed-window", window: "day" }, "window"],
  [{ window: undefined }, "window"],
])("%j contradicts itself in %s", (more, field) => {
  expect(mistakesOf({ ...rule, ...more }).join("\n")).toContain(field);
});

test("what the field table refuses is passed over: it has been reported", () => {
  expect(
    mistakesOf(7, { ...rule, key: "user" }, { ...rule, id: "s", variants: [{ name: "a", weight: "much" }] }),
  ).toEqual([]);
});
