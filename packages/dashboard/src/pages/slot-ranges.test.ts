import { expect, test } from "vitest";
import { rangesOf, SLOTS, uncovered } from "./slot-ranges.js";

test("ranges of several leaders are sorted by slot, including single slots", () => {
  const leaders = [{ slots: ["5461-10922", "3"] }, { slots: ["10923-16383"] }, { slots: ["0-2", "4-5460"] }];
  const ranges = rangesOf(leaders);
  expect(ranges.map(({ from, to, leader }) => `${from}-${to} ${leader}`)).toEqual([
    "0-2 2",
    "3-3 0",
    "4-5460 2",
    "5461-10922 0",
    "10923-16383 1",
  ]);
  expect(uncovered(ranges)).toBe(0);
});

test("slots without a leader are counted; a leader without slots has no range", () => {
  expect(uncovered(rangesOf([{ slots: ["0-16382"] }, {}]))).toBe(1);
  expect(uncovered(rangesOf([{}]))).toBe(SLOTS);
});
