import { expect, test } from "vitest";
import type { Frame } from "./frame-reader.js";
import { HeaderBlocks } from "./header-blocks.js";
import { flags, frameTypes } from "./protocol.js";

/** `:method: POST`, `:scheme: http`, `:path: /`. */
const BLOCK = Buffer.from("838684", "hex");

function frame(bytes: Buffer, marks = 0, streamId = 1): Frame {
  return { type: frameTypes.headers, flags: marks, streamId, bytes, from: 0, to: bytes.length };
}

test("a block in one frame is complete at once", () => {
  const block = new HeaderBlocks().begin(frame(BLOCK, flags.endHeaders | flags.endStream, 3));
  expect(block).toMatchObject({ streamId: 3, endsStream: true, head: { method: "POST", path: "/" } });
});

test("a block in several frames is complete with the last, and no other frame may come between them", () => {
  const blocks = new HeaderBlocks();
  expect(blocks.begin(frame(BLOCK.subarray(0, 1)))).toBeUndefined();
  expect(() => blocks.check(frameTypes.data, 1)).toThrow("within a header block");
  expect(() => blocks.check(frameTypes.continuation, 3)).toThrow("within a header block");
  blocks.check(frameTypes.continuation, 1);
  expect(blocks.continue(frame(BLOCK.subarray(1, 2)))).toBeUndefined();
  expect(blocks.continue(frame(BLOCK.subarray(2), flags.endHeaders))).toMatchObject({ endsStream: false });
  blocks.check(frameTypes.data, 5);
});

test("endless CONTINUATION frames are a flood, large or empty", () => {
  for (const part of [Buffer.alloc(0), Buffer.alloc(16_384)]) {
    const blocks = new HeaderBlocks();
    blocks.begin(frame(Buffer.alloc(0)));
    let count = 0;
    expect(() => {
      for (; count < 1_000; count++) blocks.continue(frame(part));
    }).toThrow("without end");
    expect(count).toBeLessThan(33);
  }
});

test("a CONTINUATION without HEADERS is refused", () => {
  expect(() => new HeaderBlocks().continue(frame(BLOCK))).toThrow("without HEADERS");
});
