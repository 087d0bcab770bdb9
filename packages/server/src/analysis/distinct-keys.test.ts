import { expect, test } from "vitest";
import { DistinctKeys } from "./distinct-keys.js";

test("a repeated key is counted once, and the count stays exact at its bound", () => {
  const keys = new DistinctKeys(2);
  for (const key of ["a", "b", "a", "b"]) keys.add(key);
  expect([keys.size, keys.isExact]).toEqual([2, true]);
});

test("beyond the bound the count is marked as a lower bound, even when a known key repeats", () => {
  const keys = new DistinctKeys(2);
  for (const key of ["a", "b", "c", "a", "d"]) keys.add(key);
  expect([keys.size, keys.isExact]).toEqual([2, false]);
});
