import { expect, test } from "vitest";
import type { Rule, RuleStats } from "../api/shapes.js";
import { filterRules, listQuery, sortRules } from "./rule-list.js";

const rule = (id: string, more: Partial<Rule> = {}): Rule =>
  ({ id, key: ["user"], algorithm: "fixed-window", limit: 10, window: "1m", ...more }) as Rule;
const rules = [
  rule("c", { limit: 5, tags: ["web"] }),
  rule("a", { mode: "shadow", match: { path: "/x" } }),
  rule("b", { mode: "off", algorithm: "gcra", candidate: { limit: 1 } }),
];
const stats = new Map(
  [
    { rule: "a", allowed: 1, refused: 9 },
    { rule: "b", allowed: 100, refused: 0 },
  ].map((one) => [one.rule, { shadowRefused: 0, ...one } as RuleStats]),
);
const idsOf = (search: string): string =>
  sortRules(filterRules(rules, listQuery(search)), listQuery(search), stats)
    .map(({ id }) => id)
    .join("");

test.each([
  ["", "cab"],
  ["state=enforce", "c"],
  ["state=shadow", "a"],
  ["state=candidate", "b"],
  ["algorithm=gcra", "b"],
  ["attribute=path", "a"],
  ["attribute=user&state=off", "b"],
  ["tag=web", "c"],
  ["q=path", "a"],
  ["sort=rule", "abc"],
  ["sort=-rule", "cba"],
  ["sort=limit", "cab"],
  ["sort=-traffic", "bac"],
  ["sort=-refused", "abc"],
])("the address %s lists %s", (search, ids) => {
  expect(idsOf(search)).toBe(ids);
});

test("an invalid value in the URL becomes the default", () => {
  expect(listQuery("sort=%00&page=-3&per=7")).toMatchObject({ sort: "", page: 1, perPage: 100 });
});
