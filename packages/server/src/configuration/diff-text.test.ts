import { expect, test } from "vitest";
import { diffText, summaryOf } from "./diff-text.js";

const none = { added: 0, removed: 0, changed: 0, reordered: false, changes: [] };

test("each rule is a line with its mark, each field a line below it, and the sum comes last", () => {
  const text = diffText({
    added: 1,
    removed: 1,
    changed: 1,
    reordered: true,
    changes: [
      { rule: "a", change: "added" },
      { rule: "b", change: "removed" },
      {
        rule: "c",
        change: "changed",
        fields: [
          { path: "limit", from: 1, to: 2 },
          { path: "burst", to: 3 },
        ],
        more: 4,
      },
    ],
  });
  expect(text.split("\n")).toEqual([
    "+ a",
    "- b",
    "~ c",
    "    limit: 1 -> 2",
    "    burst: (absent) -> 3",
    "    ... and 4 more fields",
    "~ the order of the rules",
    "1 added, 1 removed, 1 changed, reordered",
  ]);
});

test("rules that are not listed are counted", () => {
  expect(diffText({ ...none, added: 5, changes: [{ rule: "a", change: "added" }] })).toContain("... and 4 more rules");
});

test("no change is said in words; long values are cut at 200 characters", () => {
  expect(summaryOf(none)).toBe("no difference");
  const fields = [{ path: "description", from: "x".repeat(198), to: "x".repeat(199) }];
  const [, line] = diffText({ ...none, changed: 1, changes: [{ rule: "a", change: "changed", fields }] }).split("\n");
  const [from, to] = line!.replace("    description: ", "").split(" -> ");
  expect([from!.length, to!.length, from!.endsWith("…"), to!.endsWith("…")]).toEqual([200, 200, false, true]);
});
