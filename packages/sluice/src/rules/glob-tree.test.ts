/** The tree against the simplest possible matcher of one glob; glob.test.ts covers the meaning of single globs. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { EntryList } from "./entry-list.js";
import { GlobTree } from "./glob-tree.js";

const ENOUGH = 1_000_000;

function treeOf(globs: readonly string[]): (value: string, steps?: number) => { found: number[]; decided: boolean } {
  const tree = new GlobTree();
  for (const [i, glob] of globs.entries()) tree.add(glob, i);
  return (value, steps = ENOUGH) => {
    const list = new EntryList();
    const decided = tree.find(value, list, { steps });
    return { found: [...new Set(list.entries.slice(0, list.count))].sort((a, b) => a - b), decided };
  };
}

/** Backtracks: `**` and a slash at the start of a segment match whole segments or none. */
function matches(glob: string, value: string, isSegmentStart = true): boolean {
  if (glob === "") return value === "";
  if (glob.startsWith("**")) {
    const rest = glob.replace(/^\*+/, "");
    if (isSegmentStart && rest.startsWith("/")) {
      const cuts = [0, ...[...value.matchAll(/\//g)].map(({ index }) => index + 1)];
      return cuts.some((cut) => matches(rest.slice(1), value.slice(cut), true));
    }
    return Array.from({ length: value.length + 1 }, (_, i) => i).some((i) => matches(rest, value.slice(i), false));
  }
  if (glob.startsWith("*")) {
    const end = value.indexOf("/");
    const most = end === -1 ? value.length : end;
    return Array.from({ length: most + 1 }, (_, i) => i).some((i) => matches(glob.slice(1), value.slice(i), false));
  }
  return value[0] === glob[0] && matches(glob.slice(1), value.slice(1), glob[0] === "/");
}

test("many globs together match the same as each alone", () => {
  const part = fc.constantFrom("a", "b", "ab", "/", "*", "**", "/**/", "/");
  const glob = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));
  const value = fc.array(fc.constantFrom("a", "b", "/"), { maxLength: 8 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.uniqueArray(glob, { minLength: 1, maxLength: 6 }), value, (globs, text) => {
      const expected = [...globs.keys()].filter((i) => matches(globs[i]!, text));
      expect(treeOf(globs)(text).found).toEqual(expected);
    }),
    { numRuns: 2_000 },
  );
});

test("globs with the same beginning share it, in whatever order they were added", () => {
  const find = treeOf(["/api/v1", "/api/v2", "/api", "/ap*", "/"]);
  expect([find("/api/v2").found, find("/api").found, find("/").found]).toEqual([[1], [2, 3], [4]]);
});

test("a value that needs more steps than the budget is left undecided", () => {
  const find = treeOf(["**a**a**a**b"]);
  expect(find("a".repeat(200), 50).decided).toBe(false);
  expect(find("a".repeat(200)).decided).toBe(true);
});
