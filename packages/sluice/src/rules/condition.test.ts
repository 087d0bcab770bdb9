import { expect, test } from "vitest";
import { AttributeReader } from "./attribute-reader.js";
import { compileCondition, explainFailure, holds, presence } from "./condition.js";
import type { MatchValue } from "./rule.js";

function check(attribute: string, wanted: MatchValue, values: readonly (string | undefined)[]): boolean[] {
  const reader = new AttributeReader();
  const condition = compileCondition(attribute, wanted, reader);
  return values.map((value) => {
    reader.read(value === undefined ? {} : { [attribute]: value });
    return holds(condition, reader);
  });
}

test("values are compared as text, and one of a list is enough", () => {
  expect(check("port", [80, "443"], ["80", "443", "8080", undefined])).toEqual([true, true, false, false]);
});

test("a star alone requires presence, even of values with a slash", () => {
  expect(check("path", "*", ["/a/b", "", undefined])).toEqual([true, true, false]);
});

test("globs match text, and addresses match blocks in any notation", () => {
  expect(check("path", "/v1/*", ["/v1/a", "/v1/a/b"])).toEqual([true, false]);
  expect(check("ip", "10.0.0.0/8", ["10.9.8.7", "::ffff:10.9.8.7", "11.0.0.1", "no address"])).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("lists too long for a linear search give the same answers", () => {
  const literals = Array.from({ length: 50 }, (_, i) => `v${i}`);
  expect(check("a", literals, ["v0", "v49", "v50"])).toEqual([true, true, false]);
  const globs = Array.from({ length: 50 }, (_, i) => `/p${i}/*`);
  expect(check("path", globs, ["/p0/x", "/p49/x", "/p50/x"])).toEqual([true, true, false]);
});

test("presence holds for any value", () => {
  const reader = new AttributeReader();
  const condition = presence("user", reader.slotOf("user"));
  reader.read({ user: "" });
  expect(holds(condition, reader)).toBe(true);
  reader.read({});
  expect(holds(condition, reader)).toBe(false);
  expect(explainFailure(condition, undefined)).toBe("key attribute user is absent");
});

test("a failure is explained with what was expected, shortened, and what came", () => {
  const reader = new AttributeReader();
  expect(explainFailure(compileCondition("tier", "free", reader), "pro")).toBe('tier: expected "free", got "pro"');
  const many = compileCondition("tier", ["a", "b", "c", "d", "e", "f", "g"], reader);
  expect(explainFailure(many, undefined)).toBe(
    'tier: expected "a" or "b" or "c" or "d" or "e" or one of 2 more, got nothing',
  );
});
