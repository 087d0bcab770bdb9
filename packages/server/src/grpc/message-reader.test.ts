import { deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { framed } from "./message-frame.js";
import { MessageReader, type UnreadableMessage } from "./message-reader.js";

function reading(encoding?: string, mostBytes = 2 ** 16) {
  const messages: string[] = [];
  const reader = new MessageReader({ mostBytes, encoding, onMessage: (bytes) => void messages.push(bytes.toString()) });
  return { reader, messages };
}

test("messages are the same however their bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3_000 })),
      fc.array(fc.integer({ min: 1, max: 2_000 })),
      (texts, cuts) => {
        const bytes = Buffer.concat(texts.map((text) => framed(Buffer.from(text))));
        const { reader, messages } = reading();
        let at = 0;
        for (const cut of cuts) {
          reader.read(bytes.subarray(at, at + cut));
          at = Math.min(bytes.length, at + cut);
        }
        reader.read(bytes.subarray(at));
        expect([messages, reader.isWithin, reader.missing]).toEqual([texts, false, 0]);
      },
    ),
  );
});

test("what is missing of a message is known from its prefix on", () => {
  const { reader } = reading();
  const bytes = framed(Buffer.alloc(100));
  reader.read(bytes.subarray(0, 3));
  expect([reader.isWithin, reader.missing]).toEqual([true, 0]);
  reader.read(bytes.subarray(3, 25));
  expect([reader.isWithin, reader.missing]).toEqual([true, 80]);
});

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
])("a message may be compressed with %s", (encoding, compress) => {
  const { reader, messages } = reading(encoding);
  const bytes = framed(compress(Buffer.from("hello")));
  bytes[0] = 1;
  reader.read(bytes);
  expect(messages).toEqual(["hello"]);
});

test.each([
  ["a message above the most", undefined, framed(Buffer.alloc(2 ** 16 + 1)).subarray(0, 5), 8],
  ["a bomb", "gzip", Buffer.concat([Buffer.of(1), framed(gzipSync(Buffer.alloc(2 ** 20))).subarray(1)]), 8],
  ["no gzip", "gzip", Buffer.of(1, 0, 0, 0, 1, 7), 8],
  ["an encoding that nobody knows", "br", Buffer.of(1, 0, 0, 0, 1, 7), 12],
  ["a compressed message without an encoding", undefined, Buffer.of(1, 0, 0, 0, 1, 7), 13],
  ["a flag that is none", "gzip", Buffer.of(2, 0, 0, 0, 1, 7), 13],
])("%s ends the call", (_what, encoding, bytes, code) => {
  const { reader } = reading(encoding);
  try {
    reader.read(bytes);
    expect.unreachable();
  } catch (error) {
    expect((error as UnreadableMessage).status.code).toBe(code);
  }
});
