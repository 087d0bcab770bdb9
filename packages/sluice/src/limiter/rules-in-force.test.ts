import { expect, test } from "vitest";
import { SluiceError } from "../errors.js";
import type { Rule } from "../rules/rule.js";
import { parseRules } from "../rules/validate-rules.js";
import { RulesInForce, ruleBook } from "./rules-in-force.js";

const rule = (id: string, limit = 1): Rule => ({ id, key: [], algorithm: "fixed-window", limit, window: "1m" });

function rulesInForce(rules: readonly Rule[]) {
  const changes: string[][] = [];
  const inForce = new RulesInForce({ rules, version: 5, onChange: (now) => changes.push(now.map(({ id }) => id)) });
  return { inForce, changes };
}

test("the first rules and each swap are reported, in order, and the version increments unless it is given", async () => {
  const { inForce, changes } = rulesInForce([rule("a")]);
  inForce.set([rule("b")], undefined);
  expect(inForce.book.version).toBe(6);
  await inForce.swap([rule("c")], 40);
  expect(inForce.book.version).toBe(40);
  expect(changes).toEqual([["a"], ["b"], ["c"]]);
});

test("of overlapping calls the latest wins, even if an older one finishes later", async () => {
  const { inForce, changes } = rulesInForce([rule("a")]);
  const older = inForce.swap([rule("older")], undefined);
  inForce.set([rule("newer")], undefined);
  await older;
  expect(inForce.book.rules[0]!.id).toBe("newer");
  expect(changes).toEqual([["a"], ["newer"]]);
});

test("a document with mistakes throws, and the book stays", async () => {
  const { inForce } = rulesInForce([rule("a")]);
  const { book } = inForce;
  const bad = [rule("a", -1)];
  expect(() => inForce.set(bad, undefined)).toThrow(SluiceError);
  await expect(inForce.swap(bad, undefined)).rejects.toMatchObject({ code: "invalid-rules" });
  expect(inForce.book).toBe(book);
});

test("validated rules come into force as they are, without a second validation or a copy", async () => {
  const { inForce } = rulesInForce([]);
  const validated = parseRules([rule("a"), rule("b")]);
  await inForce.swapValidated(validated, 2);
  expect(inForce.book.rules[0]).toBe(validated[0]);
  await inForce.swap(validated, 3);
  expect(inForce.book.rules[0]).not.toBe(validated[0]);
});

test("validated rules of two documents that share an id are refused", async () => {
  const { inForce } = rulesInForce([rule("old")]);
  const joined = [...parseRules([rule("a")]), ...parseRules([rule("a")])];
  await expect(inForce.swapValidated(joined, 2)).rejects.toMatchObject({
    code: "invalid-rules",
    message: expect.stringContaining("rules[1].id: expected a unique id"),
  });
  expect(inForce.book.rules[0]!.id).toBe("old");
});

test("a rule book that a part of checkAll brings along is validated too", () => {
  expect(ruleBook([rule("a")]).find("a")).toMatchObject({ limit: 1 });
  expect(() => ruleBook([rule("A b")])).toThrow(/rules\[0\]\.id/);
});
