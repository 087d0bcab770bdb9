import type { Rule } from "sluice";
import { runAtOnce } from "sluice/internal";
import { expect, test } from "vitest";
import { countersBeginAnew, findingConflicts } from "./rule-warnings.js";

const rule = (id: string, more: object = {}): Rule =>
  ({ id, key: ["user"], algorithm: "rolling-window", limit: 100, window: "1m", ...more }) as Rule;
const conflicts = (written: Rule, rules: readonly Rule[]) => runAtOnce(findingConflicts(written, rules));
const wordsOf = (written: Rule, other: Rule): string =>
  conflicts(written, [written, other])
    .map(({ message }) => message)
    .join();

test("a rule whose requests are already limited by a stricter rule never refuses first", () => {
  const narrow = rule("narrow", { match: { path: "/v1/checkout" } });
  const wide = rule("wide", { match: { path: "/v1/**" }, limit: 50, window: "60s" });
  expect(wordsOf(narrow, wide)).toMatch(
    /^the rule wide matches every request of this one.*50 in 60s.*never refuses first/,
  );
  expect(wordsOf(wide, narrow)).toMatch(/narrow never refuses first$/);
  expect(wordsOf(narrow, rule("wide", { match: { path: "/v1/**" }, limit: 500 }))).toBe("");
});

test("two limits on the same requests and key are contradictory", () => {
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

test("a changed key, algorithm or storage resets counters; changed numbers do not", () => {
  const paths = (more: object) => countersBeginAnew(rule("a"), rule("a", more)).map(({ path }) => path);
  expect(paths({ key: ["user", "ip"] })).toEqual(["key"]);
  expect(paths({ key: [] })).toEqual(["key"]);
  expect(paths({ algorithm: "gcra" })).toEqual(["algorithm"]);
  expect(paths({ colocate: "tenant" })).toEqual(["colocate"]);
  expect(paths({ limit: 5, window: "1h" })).toEqual([]);
  expect(countersBeginAnew(undefined, rule("a"))).toEqual([]);
});

test("searching many rules yields to checks", () => {
  const search = findingConflicts(
    rule("a"),
    Array.from({ length: 10_000 }, (_, i) => rule(`r${i}`, { window: "1h" })),
  );
  let pauses = 0;
  while (search.next().done !== true) pauses++;
  expect(pauses).toBeGreaterThan(50);
});
