import { expect, test } from "vitest";
import { extensionName, type HoldRow, heldOf, overrunName, rowsToRepay, withRow } from "./hold.js";
import type { Policy } from "./policy.js";

const first: HoldRow = { entryId: "e", atMs: 1, units: [5, 2], endsAtMs: [100, 100] };
const policy: Policy = { stored: "fixed-window", limit: 100, windowMs: 100 };
const nowMs = 10;

test("the newest units are given back first", () => {
  const rows = withRow([first], { atMs: 9, units: [3, 0], endsAtMs: [100, 100] });
  expect(heldOf({ rows }, 0)).toBe(8);
  expect(rowsToRepay({ rows }, 0, { units: 4, policy, nowMs })).toEqual([
    { row: rows[1], units: 3 },
    { row: first, units: 1 },
  ]);
  expect(rowsToRepay({ rows }, 1, { units: 2, policy, nowMs })).toEqual([{ row: first, units: 2 }]);
  expect(rowsToRepay({ rows }, 1, { units: 0, policy, nowMs })).toEqual([]);
});

test("a bucket gives back only what its refill has not paid yet", () => {
  // Two tokens a millisecond.
  const bucket: Policy = { stored: "token-bucket", limit: 50, capacity: 50, amount: 2, scaleMs: 1 };
  const given = (atMs: number): number =>
    rowsToRepay({ rows: [first] }, 0, { units: 5, policy: bucket, nowMs: atMs })[0]?.units ?? 0;
  expect([50, 97, 98, 99, 100, 200].map(given)).toEqual([5, 5, 4, 2, 0, 0]);
});

test("each extension, and what was not held at all, has a name of its own", () => {
  const rows = withRow([first], { atMs: 9, units: [3, 0], endsAtMs: [100, 100] });
  expect([rows[1]!.entryId, extensionName(rows), overrunName(rows)]).toEqual(["e:x1", "e:x2", "e:o"]);
});

test("extensions without end take bounded room, and lose no unit", () => {
  let rows: readonly HoldRow[] = [first];
  for (let i = 0; i < 1_000; i++) rows = withRow(rows, { atMs: i, units: [1, 0], endsAtMs: [i, i] });
  expect(rows).toHaveLength(64);
  expect(heldOf({ rows }, 0)).toBe(1_005);
});
