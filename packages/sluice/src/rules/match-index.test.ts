import { expect, test } from "vitest";
import { runAtOnce, Stride } from "../time-slices.js";
import { AttributeReader } from "./attribute-reader.js";
import { compileCondition } from "./condition.js";
import { EntryList } from "./entry-list.js";
import { MatchIndex } from "./match-index.js";
import type { Attributes, Match } from "./rule.js";

function indexOf(...entries: Match[]) {
  const reader = new AttributeReader();
  const conditions = entries.map((match) =>
    Object.keys(match).map((attribute) => compileCondition(attribute, match[attribute]!, reader)),
  );
  const index = runAtOnce(MatchIndex.filing(conditions, new Stride()));
  return {
    find(attributes: Attributes): number[] {
      const found = new EntryList();
      reader.read(attributes);
      index.find(reader, found);
      return found.entries.slice(0, found.count);
    },
    first(attributes: Attributes): number {
      reader.read(attributes);
      return index.first(reader);
    },
    stepsFor(attributes: Attributes): number {
      this.find(attributes);
      return reader.steps;
    },
  };
}

test("entries whose conditions all hold are found, each once, in order", () => {
  const { find } = indexOf(
    { user: "ann", path: "/v1/**" },
    {},
    { path: ["/v1/*", "/v1/**"] },
    { user: "*" },
    { user: "ben" },
  );
  expect(find({ user: "ann", path: "/v1/x" })).toEqual([0, 1, 2, 3]);
  expect(find({ user: "ann", path: "/v2" })).toEqual([1, 3]);
  expect(find({})).toEqual([1]);
});

test("the first entry that holds wins, or none", () => {
  const { first } = indexOf({ user: "ann", tier: "pro" }, { user: "ann" });
  expect([first({ user: "ann" }), first({ user: "ann", tier: "pro" }), first({ user: "ben" })]).toEqual([1, 0, -1]);
});

test("an entry is filed under its rarest condition: ten thousand others cost a request nothing", () => {
  const entries = Array.from({ length: 10_000 }, (_, i) => ({ path: "/v1/**", tenant: `t${i}` }));
  const index = indexOf(...entries);
  expect(index.find({ path: "/v1/x", tenant: "t7" })).toEqual([7]);
  expect(index.stepsFor({ path: "/v1/x", tenant: "t7" })).toBeLessThan(50);
});
