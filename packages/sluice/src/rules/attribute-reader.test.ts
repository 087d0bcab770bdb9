import { expect, test } from "vitest";
import { AttributeReader, checkCost, costIn, MOST_MATCHING_STEPS, readAttribute } from "./attribute-reader.js";
import type { Attributes } from "./rule.js";

function readerOf(...names: string[]): AttributeReader {
  const reader = new AttributeReader();
  for (const name of names) reader.slotOf(name);
  return reader;
}

test("values are text in the slots of the attributes that rules use", () => {
  const reader = readerOf("user", "port", "beta");
  reader.read({ user: "ann", port: 80, beta: false, other: { anything: 1 } as unknown as string });
  expect(reader.values).toEqual(["ann", "80", "false"]);
});

test("a request leaks nothing into the next, even if it was refused halfway", () => {
  const reader = readerOf("a", "b");
  expect(() => reader.read({ a: "1", b: Number.NaN })).toThrow(
    "attributes.b: expected a string, a finite number or a boolean, got NaN",
  );
  reader.read({ b: "2" });
  expect(reader.values).toEqual([undefined, "2"]);
  expect(reader.filled.count).toBe(1);
});

test("inherited fields are absent, even if an attribute has the name of one", () => {
  const reader = readerOf("constructor", "user");
  reader.read(Object.create({ user: "ann" }) as Attributes);
  expect(reader.values).toEqual([undefined, undefined]);
  expect(readAttribute({}, "toString")).toBeUndefined();
});

test.each([null, [], "text", 7])("%j is not a set of attributes", (attributes) => {
  expect(() => readerOf("a").read(attributes as unknown as Attributes)).toThrow("attributes: expected an object");
});

test("patterns are matched once per request, and matching ends when its steps are used up", () => {
  const reader = readerOf("path");
  const glob = reader.patternsOf(0).add("/v1/*", "glob");
  reader.read({ path: "/v1/x" });
  expect(reader.matchedPatterns(0).hasMatched(glob)).toBe(true);
  const { steps } = reader;
  reader.matchedPatterns(0);
  expect(reader.steps).toBe(steps);
  expect(() => reader.spend(MOST_MATCHING_STEPS)).toThrow(expect.objectContaining({ code: "too-complex" }));
  reader.read({ path: "/v2/x" });
  expect(reader.matchedPatterns(0).hasMatched(glob)).toBe(false);
});

test("a cost is a whole number, and an attribute may contain only digits", () => {
  expect(costIn("tokens", "0012")).toBe(12);
  for (const text of ["", "-1", "1.5", "0x10", "1e3", "99999999999999999"]) {
    expect(() => costIn("tokens", text)).toThrow("attributes.tokens: expected a whole number of at least 0");
  }
  expect(() => checkCost(-1)).toThrow("cost: expected a whole number of at least 0, got -1");
  expect(() => checkCost(0)).not.toThrow();
});
