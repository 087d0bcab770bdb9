import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { conflictingRules, countersBeginAnew } from "./rule-warnings.js";

const rule = (id: string, more: object = {}): Rule =>
  ({ id, key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m", ...more }) as Rule;
const wordsOf = (written: Rule, other: Rule): string =>
  conflictingRules(written, [written, other])
    .map(({ message }) => message)
    .join();

test("a rule whose requests a stricter rule limits already never refuses first", () => {
  const narrow = rule("narrow", { match: { path: "/v1/checkout" } });
  const wide = rule("wide", { match: { path: "/v1/**" }, limit: 50, window: "60s" });
  expect(wordsOf(narrow, wide)).toMatch(
    /^the rule wide matches every request of this one.*50 in 60s.*never refuses first/,
  );
  expect(wordsOf(wide, narrow)).toMatch(/narrow never refuses first$/);
  expect(wordsOf(narrow, rule("wide", { match: { path: "/v1/**" }, limit: 500 }))).toBe("");
});

test("two limits of the same requests by the same key contradict each other", () => {
  expect(wordsOf(rule("a"), rule("b", { limit: 7 }))).toMatch(/b limits the same requests.*only the lower/);
});

test.each([
  ["another key", { key: ["ip"] }],
  ["another window", { window: "1h" }],
  ["in shadow", { mode: "shadow" }],
  ["with overrides", { overrides: [{ match: { user: "ann" }, limit: 9 }] }],
  ["another algorithm", { algorithm: "gcra" }],
  ["a cost", { cost: 2 }],
  ["places", { algorithm: "concurrency", window: undefined }],
  ["other requests", { match: { path: "/other/**" } }],
])("nothing is said where the rules alone do not tell: %s", (_, more) => {
  expect(wordsOf(rule("a", { match: { path: "/v1/x" } }), rule("b", { limit: 1, ...more }))).toBe("");
});

test("another key, algorithm or place of the counters begins anew; other numbers do not", () => {
  const paths = (more: object) => countersBeginAnew(rule("a"), rule("a", more)).map(({ path }) => path);
  expect(paths({ key: ["user", "ip"] })).toEqual(["key"]);
  expect(paths({ key: [] })).toEqual(["key"]);
  expect(paths({ algorithm: "gcra" })).toEqual(["algorithm"]);
  expect(paths({ colocate: "tenant" })).toEqual(["colocate"]);
  expect(paths({ limit: 5, window: "1h" })).toEqual([]);
  expect(countersBeginAnew(undefined, rule("a"))).toEqual([]);
});
