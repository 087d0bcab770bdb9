import { expect, test } from "vitest";
import type { Attributes, Rule } from "./rule.js";
import { compileRuleBook } from "./rule-book.js";

const rule: Rule = { id: "r", key: ["user"], algorithm: "token-bucket", limit: 3, window: "1m" };
const soleOf = (...rules: readonly Rule[]) => compileRuleBook(rules, 1).sole;

test("a request has the check that the book would make, and is made once per value", () => {
  const book = compileRuleBook([{ ...rule, cost: 2 }], 1);
  const request = book.sole!.requestOf({ user: "a,b=c%", other: "x" });
  expect([request!.check]).toEqual(book.checks({ user: "a,b=c%" }, undefined));
  expect(book.sole!.requestOf({ user: "a,b=c%" })).toBe(request);
});

test.each<[string, readonly Rule[]]>([
  ["no rule", []],
  ["two rules", [rule, { ...rule, id: "s" }]],
  ["a match", [{ ...rule, match: { path: "/x" } }]],
  ["two key attributes", [{ ...rule, key: ["user", "tenant"] }]],
  ["no key attribute", [{ ...rule, key: [] }]],
  ["overrides", [{ ...rule, overrides: [{ match: { user: "a" }, limit: 1 }] }]],
  ["a candidate", [{ ...rule, candidate: { limit: 1 } }]],
  ["a cost by attribute", [{ ...rule, cost: { attribute: "units" } }]],
  ["turns", [{ ...rule, maxWait: "1s" }]],
  ["blocks", [{ ...rule, blockFor: "1m" }]],
  ["places", [{ id: "r", key: ["user"], algorithm: "concurrency", limit: 3, ttl: "1m" } as Rule]],
  ["the mode shadow", [{ ...rule, mode: "shadow" }]],
])("a book with %s has no fast path", (_what, rules) => {
  expect(soleOf(...rules)).toBeUndefined();
});

test.each<[string, unknown]>([
  ["a number", { user: 1 }],
  ["nothing by that name", { tenant: "t" }],
  ["an inherited field", Object.create({ user: "a" })],
  ["a field that is not enumerated", Object.defineProperty({}, "user", { value: "a" })],
  ["a list", Object.assign([], { user: "a" })],
  ["null", null],
])("%s is left to the book", (_what, attributes) => {
  expect(soleOf(rule)!.requestOf(attributes as Attributes)).toBeUndefined();
});
