import { expect, test } from "vitest";
import { extensionName, type HoldRow, heldOf, overrunName, rowsToRepay, withRow } from "./hold.js";

const first: HoldRow = { entryId: "e", atMs: 1, units: [5, 2], owed: [0, 0] };

test("the newest units are given back first", () => {
  const rows = withRow([first], { atMs: 9, units: [3, 0], owed: [0, 0] });
  expect(heldOf({ rows }, 0)).toBe(8);
  expect(rowsToRepay({ rows }, 0, 4)).toEqual([
    { row: rows[1], units: 3 },
    { row: first, units: 1 },
  ]);
  expect(rowsToRepay({ rows }, 1, 2)).toEqual([{ row: first, units: 2 }]);
  expect(rowsToRepay({ rows }, 1, 0)).toEqual([]);
});

test("each extension, and each overrun, has its own name", () => {
  const rows = withRow([first], { atMs: 9, units: [3, 0], owed: [0, 0] });
  expect([rows[1]!.entryId, extensionName(rows), overrunName(rows)]).toEqual(["e:x1", "e:x2", "e:o"]);
});

test("any number of extensions takes bounded space and loses no unit", () => {
  let rows: readonly HoldRow[] = [first];
  for (let i = 0; i < 1_000; i++) rows = withRow(rows, { atMs: i, units: [1, 0], owed: [i, i] });
  expect(rows).toHaveLength(64);
  expect(heldOf({ rows }, 0)).toBe(1_005);
});
