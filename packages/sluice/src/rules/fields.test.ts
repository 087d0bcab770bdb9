import { expect, test } from "vitest";
import { algorithmNames } from "./field-kinds.js";
import { algorithmsOf, numberFieldsOf, override, rule, ruleDocument } from "./fields.js";

test("every algorithm has its number fields, and each has a limit", () => {
  expect([...numberFieldsOf.keys()]).toEqual(algorithmNames);
  for (const fields of numberFieldsOf.values()) expect(fields).toContain("limit");
  expect(numberFieldsOf.get("concurrency")).toEqual(["limit", "ttl"]);
  expect(numberFieldsOf.get("gcra")).toEqual(["limit", "window", "burst", "prefetch", "maxWait", "blockFor"]);
});

test("the algorithms of a field are those that have it", () => {
  expect(algorithmsOf("minInterval")).toEqual(["rolling-window"]);
  expect(algorithmsOf("limit")).toBeUndefined();
  expect(algorithmsOf("constructor")).toBeUndefined();
});

test("the lists of rules and overrides are long: walking them pauses", () => {
  expect([...ruleDocument.longLists.keys()]).toEqual(["rules"]);
  expect([...rule.longLists.keys()]).toEqual(["overrides"]);
});

test("an override explains why it may not change the algorithm", () => {
  expect(override.fields.has("algorithm")).toBe(false);
  expect(override.refused?.get("algorithm")).toContain("not the algorithm");
});
