import { expect, test } from "vitest";
import { PatternSet } from "./pattern-set.js";

const matchedBy = (set: PatternSet, value: string): number[] => {
  set.read(value, { steps: 10_000 });
  return set.matched.entries.slice(0, set.matched.count).sort((a, b) => a - b);
};

test("a known pattern keeps its number", () => {
  const set = new PatternSet();
  expect([set.add("/a/*", "glob"), set.add("/b/*", "glob"), set.add("/a/*", "glob")]).toEqual([0, 1, 0]);
});

test("globs and blocks are matched together, each once", () => {
  const set = new PatternSet();
  const globs = [set.add("10.**", "glob"), set.add("**0**", "glob")];
  const blocks = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "2001:db8::/32"].map((block) => set.add(block, "block"));
  expect(matchedBy(set, "10.1.2.3")).toEqual([...globs, blocks[0], blocks[1], blocks[2]]);
  expect(matchedBy(set, "10.1.9.9")).toEqual([...globs, blocks[0], blocks[1]]);
  expect(matchedBy(set, "2001:db8::1")).toEqual([globs[1], blocks[3]]);
});

test("two notations of one block are two patterns, and both match", () => {
  const set = new PatternSet();
  set.add("2001:db8::/32", "block");
  set.add("2001:0db8::/32", "block");
  expect(matchedBy(set, "2001:db8::5")).toEqual([0, 1]);
});

test("a match is valid only for the last value read", () => {
  const set = new PatternSet();
  const glob = set.add("/a/*", "glob");
  matchedBy(set, "/a/x");
  expect(set.hasMatched(glob)).toBe(true);
  matchedBy(set, "/b/x");
  expect(set.hasMatched(glob)).toBe(false);
});

test("an exceeded budget is reported", () => {
  const set = new PatternSet();
  set.add("**a**a**b", "glob");
  expect(set.read("a".repeat(100), { steps: 10 })).toBe(false);
});
