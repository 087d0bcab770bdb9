import { expect, test } from "vitest";
import { beginBlock, blockLeftMs, freshBlock, nextBlockMs } from "./block.js";

test("successive blocks get longer, and the last length repeats", () => {
  const state = freshBlock();
  const lengths = [10, 20, 40];
  const seen: number[] = [];
  for (let nowMs = 1_000, i = 0; i < 5; i++) {
    expect(nextBlockMs(state, lengths, nowMs)).toBe(lengths[Math.min(i, 2)]);
    beginBlock(state, lengths, nowMs);
    seen.push(blockLeftMs(state, nowMs));
    // One millisecond before the block is forgotten.
    nowMs += 2 * state.lengthMs - 1;
  }
  expect(seen).toEqual([10, 20, 40, 40, 40]);
});

test("a key that stayed away as long as its block lasted starts at the first length", () => {
  const state = freshBlock();
  beginBlock(state, [10, 20], 0);
  expect(nextBlockMs(state, [10, 20], 19)).toBe(20);
  expect(nextBlockMs(state, [10, 20], 20)).toBe(10);
  expect(state.endsAtMs).toBe(20);
});

test("a block begun by a clock that was hours ahead lasts once more, not for hours", () => {
  const state = freshBlock();
  beginBlock(state, [1_000, 2_000], 3_600_000);
  expect(blockLeftMs(state, 3_599_999)).toBe(1_000);
  expect(blockLeftMs(state, 5_000)).toBe(1_000);
  expect(state.endsAtMs).toBe(7_000);
  expect(blockLeftMs(state, 5_999)).toBe(1);
  expect(blockLeftMs(state, 6_000)).toBe(0);
  expect(nextBlockMs(state, [1_000, 2_000], 6_999)).toBe(2_000);
  expect(nextBlockMs(state, [1_000, 2_000], 7_000)).toBe(1_000);
});

test("a block of one length counts for nothing after its end, even if the rule then has several lengths", () => {
  const state = freshBlock();
  beginBlock(state, [50], 0);
  expect(blockLeftMs(state, 49)).toBe(1);
  expect(nextBlockMs(state, [10, 20], 50)).toBe(10);
});
