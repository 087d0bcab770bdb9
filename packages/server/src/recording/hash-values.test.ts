import type { Rule } from "sluice";
import { expect, test } from "vitest";
import { HashedValues, opaqueRules } from "./hash-values.js";

const rule: Rule = {
  id: "r",
  match: { user: ["acme", "a*"], path: "/v1/**" },
  key: ["user"],
  algorithm: "fixed-window",
  limit: 1,
  window: "1m",
  overrides: [{ match: { user: 42 }, limit: 2 }],
};

test("named attributes are hashed, equal values equally; others stay", () => {
  const hashed = new HashedValues(["user"], "key");
  const one = hashed.attributes({ user: "acme", path: "/x" });
  expect(one).toEqual({ user: hashed.hash("acme"), path: "/x" });
  expect(one.user).toMatch(/^[\w-]{16}$/);
  expect(hashed.attributes({ user: 42 })).toEqual(hashed.attributes({ user: "42" }));
  expect(new HashedValues(["user"], "other").hash("acme")).not.toBe(hashed.hash("acme"));
});

test("an attribute named __proto__ stays an attribute", () => {
  const attributes = JSON.parse('{"__proto__":"p","user":"u"}') as Record<string, string>;
  const hashed = new HashedValues(["__proto__"], "key");
  expect(Object.keys(hashed.attributes(attributes))).toEqual(["__proto__", "user"]);
  expect(JSON.stringify(hashed.attributes(attributes))).not.toContain('"p"');
});

test("literal values in rules are hashed like their attributes; patterns stay and make the rule opaque", () => {
  const hashed = new HashedValues(["user"], "key");
  expect(hashed.rule(rule)).toMatchObject({
    match: { user: [hashed.hash("acme"), "a*"], path: "/v1/**" },
    overrides: [{ match: { user: hashed.hash("42") }, limit: 2 }],
  });
  expect([...opaqueRules([rule], ["user"])]).toEqual(["r"]);
  expect([...opaqueRules([rule], ["path"])]).toEqual(["r"]);
  expect([...opaqueRules([{ ...rule, match: { user: "*" } }], ["user"])]).toEqual([]);
  expect([...opaqueRules([{ ...rule, match: { ip: "10.0.0.1" } }], ["ip"])]).toEqual(["r"]);
});

test("values that differ in a lone surrogate have different hashes", () => {
  const hashed = new HashedValues(["user"], "key");
  const hashes = ["\ud800", "\ud801", "\udc00", "\ufffd", "\ud83d\ude00"].map((user) => hashed.hash(user));
  expect(new Set(hashes).size).toBe(hashes.length);
});
