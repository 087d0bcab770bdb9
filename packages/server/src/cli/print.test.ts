import { expect, test } from "vitest";
import { plain } from "./print.js";

test("columns are aligned with their headings, for any number of rows", () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`rule-${i}`, "x"]);
  const lines = plain(["id", "mode"], rows).split("\n");
  expect([lines.length, lines[0], lines[1]]).toEqual([200_001, "id           mode", "rule-0       x"]);
});

test("a cell of a megabyte does not widen the other lines", () => {
  const lines = plain(["a", "b"], [["x".repeat(2 ** 20), "1"], ...Array.from({ length: 50 }, () => ["y", "2"])]).split(
    "\n",
  );
  expect(lines[1]).toHaveLength(2 ** 20 + 3);
  expect(lines[2]).toHaveLength(256 + 3);
});
