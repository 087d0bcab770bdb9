import fc from "fast-check";
import { expect, test } from "vitest";
import { WaitingBytes } from "./waiting-bytes.js";

test("bytes come out in order, and a subarray that was kept never changes", () => {
  const step = fc.oneof(fc.uint8Array({ maxLength: 2_000 }), fc.nat(3_000));
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const waiting = new WaitingBytes();
      const kept: { part: Buffer; was: Buffer }[] = [];
      let expected = Buffer.alloc(0);
      for (const one of steps) {
        if (typeof one === "number") {
          const count = Math.min(one, waiting.length);
          const part = waiting.unread.subarray(0, count);
          kept.push({ part, was: Buffer.from(part) });
          waiting.skip(count);
          expected = expected.subarray(count);
        } else {
          waiting.add(Buffer.from(one));
          expected = Buffer.concat([expected, one]);
        }
        expect(waiting.unread.equals(expected)).toBe(true);
      }
      for (const { part, was } of kept) expect(part.equals(was)).toBe(true);
    }),
  );
});

test("single bytes do not cost a buffer each", () => {
  const waiting = new WaitingBytes();
  const buffers = new Set<ArrayBufferLike>();
  for (let i = 0; i < 65_536; i++) {
    waiting.add(Buffer.of(1));
    buffers.add(waiting.unread.buffer);
  }
  expect(waiting.length).toBe(65_536);
  expect(buffers.size).toBeLessThan(10);
});
