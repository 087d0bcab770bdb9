import { expect, test } from "vitest";
import { AttributeReader } from "./attribute-reader.js";
import { compileCondition } from "./condition.js";
import { EntryList } from "./entry-list.js";
import type { MatchValue } from "./rule.js";
import { ValueIndex } from "./value-index.js";

function indexOf(...wanted: MatchValue[]): (value: string) => number[] {
  const reader = new AttributeReader();
  const index = new ValueIndex();
  for (const [entry, value] of wanted.entries()) index.file(compileCondition("a", value, reader), entry);
  return (value) => {
    const found = new EntryList();
    reader.read({ a: value });
    index.find(value, found);
    if (index.hasPatterns) index.findByPatterns(reader.matchedPatterns(reader.slotOf("a")).matched, found);
    return found.entries.slice(0, found.count).sort((a, b) => a - b);
  };
}

test("entries are found by value, by pattern and by presence", () => {
  const find = indexOf("x", ["x", "y"], "*", "x*");
  expect([find("x"), find("y"), find("xz"), find("other")]).toEqual([[0, 1, 2, 3], [1, 2], [2, 3], [2]]);
});

test("an entry may be found by more than one of its patterns", () => {
  expect(indexOf(["x*", "*z"])("xz")).toEqual([0, 0]);
});

test("an index without patterns reports that it has none", () => {
  const index = new ValueIndex();
  index.file(compileCondition("a", "x", new AttributeReader()), 0);
  expect(index.hasPatterns).toBe(false);
});
