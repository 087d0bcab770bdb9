import fc from "fast-check";
import { expect, test } from "vitest";
import { framed } from "./message-frame.js";
import { MessageReader, type UnreadableMessage } from "./message-reader.js";

const reading = (encoding?: string) => new MessageReader({ mostBytes: 2 ** 16, encoding });

test("messages are the same however their bytes are split, and none is read before the previous one is taken", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 3_000 })),
      fc.array(fc.integer({ min: 1, max: 2_000 })),
      (texts, cuts) => {
        const bytes = Buffer.concat(texts.map((text) => framed(Buffer.from(text))));
        const reader = reading();
        const messages: string[] = [];
        const readAll = (part: Buffer): void => {
          // The reader must not keep the bytes it is given: they are reused.
          const lent = Buffer.from(part);
          for (let at = 0; at < lent.length; ) {
            at += reader.read(lent.subarray(at));
            const message = reader.take();
            if (message === undefined) continue;
            if (at === lent.length) lent.fill(0);
            messages.push(message.bytes.toString());
          }
        };
        let at = 0;
        for (const cut of cuts) {
          readAll(bytes.subarray(at, at + cut));
          at = Math.min(bytes.length, at + cut);
        }
        readAll(bytes.subarray(at));
        expect([messages, reader.hasBegun, reader.missing]).toEqual([texts, false, 0]);
      },
    ),
  );
});

test("the missing length is known from the prefix on, and nothing behind the message is read", () => {
  const reader = reading();
  const bytes = Buffer.concat([framed(Buffer.alloc(100)), Buffer.of(0, 0)]);
  reader.read(bytes.subarray(0, 3));
  expect([reader.hasBegun, reader.missing, reader.take()]).toEqual([true, 0, undefined]);
  reader.read(bytes.subarray(3, 25));
  expect([reader.hasBegun, reader.missing, reader.hasMessage]).toEqual([true, 80, false]);
  expect(reader.read(bytes.subarray(25))).toBe(80);
  expect([reader.hasMessage, reader.read(bytes.subarray(105))]).toEqual([true, 0]);
  expect(reader.take()).toEqual({ bytes: Buffer.alloc(100), isCompressed: false });
});

test.each([
  ["a message above the most", undefined, Buffer.of(0, 0, 1, 0, 1), 8],
  ["a compressed message without an encoding", undefined, Buffer.of(1, 0, 0, 0, 1), 13],
  ["a flag that is none", "gzip", Buffer.of(2, 0, 0, 0, 1), 13],
])("%s ends the call by its prefix", (_what, encoding, bytes, code) => {
  try {
    reading(encoding).read(bytes);
    expect.unreachable();
  } catch (error) {
    expect((error as UnreadableMessage).status.code).toBe(code);
  }
});
