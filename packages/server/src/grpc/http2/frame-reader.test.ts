import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameReader } from "./frame-reader.js";
import { ConnectionError, PREFACE } from "./protocol.js";

function frame({ type, flags, streamId, payload }: { type: number; flags: number; streamId: number; payload: string }) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, Buffer.from(payload, "latin1")]);
}

const anyFrame = fc.record({
  type: fc.nat(255),
  flags: fc.nat(255),
  streamId: fc.nat(2 ** 31 - 1),
  payload: fc.oneof(fc.constantFrom("", "a", "\xff\0b"), fc.constant("x".repeat(16_384))),
});

test("frames are the same however their bytes are split into chunks", () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 20_000 })),
      (frames, cuts) => {
        const bytes = Buffer.concat([PREFACE, ...frames.map(frame)]);
        const read: typeof frames = [];
        const reader = new FrameReader(({ type, flags, streamId, bytes, from, to }) => {
          read.push({ type, flags, streamId, payload: bytes.toString("latin1", from, to) });
        });
        let at = 0;
        for (const cut of cuts) {
          reader.read(bytes.subarray(at, at + cut));
          at = Math.min(bytes.length, at + cut);
        }
        reader.read(bytes.subarray(at));
        expect(read).toEqual(frames);
      },
    ),
  );
});

test("another protocol is detected at the first byte that differs from the preface", () => {
  const reader = new FrameReader(() => undefined);
  reader.read(Buffer.from("PRI "));
  expect(reader.hasPreface).toBe(false);
  expect(() => reader.read(Buffer.from("/ HTTP/1.1"))).toThrow(ConnectionError);
});

test("a frame above 16384 bytes is refused by its header, before its payload arrives", () => {
  const reader = new FrameReader(() => undefined);
  reader.read(PREFACE);
  const head = frame({ type: 0, flags: 0, streamId: 1, payload: "x".repeat(16_385) }).subarray(0, 9);
  expect(() => reader.read(head)).toThrow("16384");
});

test("a stopped reader reads no further frame, not even from the same chunk", () => {
  let count = 0;
  const reader = new FrameReader(() => {
    count++;
    reader.stop();
  });
  const one = frame({ type: 6, flags: 0, streamId: 0, payload: "12345678" });
  reader.read(Buffer.concat([PREFACE, one, one]));
  reader.read(one);
  expect(count).toBe(1);
});
