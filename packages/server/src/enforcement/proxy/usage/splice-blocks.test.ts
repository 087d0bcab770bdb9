import fc from "fast-check";
import { expect, test } from "vitest";
import { spliceBlocks, splicedBytes } from "./splice-blocks.js";

test("splicing blocks equals splicing the concatenation", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 6 })),
      fc.nat(40),
      fc.nat(10),
      fc.string(),
      (pieces, from, count, text) => {
        const blocks = pieces.map((piece) => Buffer.from(piece));
        const whole = Buffer.concat(blocks);
        const start = Math.min(from, whole.length);
        const end = Math.min(start + count, whole.length);
        const spliced = Buffer.concat([...spliceBlocks(blocks, { start, end, text })]);
        expect(spliced).toEqual(Buffer.concat([whole.subarray(0, start), Buffer.from(text), whole.subarray(end)]));
        expect(splicedBytes(whole.length, { start, end, text })).toBe(spliced.length);
      },
    ),
  );
});

test("without a splice the blocks are unchanged", () => {
  const blocks = [Buffer.from("a")];
  expect([spliceBlocks(blocks, undefined), splicedBytes(1, undefined)]).toEqual([blocks, 1]);
});
