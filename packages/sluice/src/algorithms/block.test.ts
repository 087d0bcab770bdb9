import { expect, test } from "vitest";
import { beginBlock, blockLeftMs, freshBlock, nextBlockMs } from "./block.js";

test("blocks grow while they follow each other, and the last length stays", () => {
  const state = freshBlock();
  const lengths = [10, 20, 40];
  const seen: number[] = [];
  for (let nowMs = 1_000, i = 0; i < 5; i++) {
    expect(nextBlockMs(state, lengths, nowMs)).toBe(lengths[Math.min(i, 2)]);
    beginBlock(state, lengths, nowMs);
    seen.push(blockLeftMs(state, nowMs));
    // One millisecond before the memory of the block is gone.
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

test("after a clock that was hours ahead a block lasts once more, not for hours", () => {
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
