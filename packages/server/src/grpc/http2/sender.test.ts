import type { Socket } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameReader } from "./frame-reader.js";
import { Output } from "./output.js";
import { flags, frameTypes, INITIAL_WINDOW, PREFACE } from "./protocol.js";
import { Sender, WaitingData } from "./sender.js";
import { Stream } from "./stream.js";

function open(all = new WaitingData()) {
  const frames: { type: number; streamId: number; length: number; ends: boolean }[] = [];
  const reader = new FrameReader(({ type, streamId, flags: marks, from, to }) => {
    frames.push({ type, streamId, length: to - from, ends: (marks & flags.endStream) !== 0 });
  });
  reader.read(PREFACE);
  const socket = {
    writable: true,
    writableLength: 0,
    on: () => undefined,
    write: (bytes: Buffer) => void reader.read(bytes),
  };
  const output = new Output(socket as unknown as Socket);
  const closed: number[] = [];
  let overflows = 0;
  const events = {
    onLocalClosed: ({ id }: Stream) => void closed.push(id),
    onReset: () => undefined,
    onOverflow: () => void overflows++,
  };
  const sender = new Sender(output, events, all);
  const dataOf = (id?: number) => frames.filter(({ type, streamId }) => type === 0 && (id ?? streamId) === streamId);
  const sent = (id?: number): number => {
    output.flush();
    return dataOf(id).reduce((sum, { length }) => sum + length, 0);
  };
  return { sender, output, frames, closed, sent, overflows: () => overflows };
}

// A message gets a five-byte prefix, so a body of five bytes becomes ten.
test("an answer takes three frames, and the last ends the stream", () => {
  const { sender, output, frames, closed } = open();
  const stream = new Stream(1, sender);
  stream.answer(Buffer.alloc(3), Buffer.alloc(5), Buffer.alloc(4));
  output.flush();
  expect(frames).toEqual([
    { type: frameTypes.headers, streamId: 1, length: 3, ends: false },
    { type: frameTypes.data, streamId: 1, length: 10, ends: false },
    { type: frameTypes.headers, streamId: 1, length: 4, ends: true },
  ]);
  expect(closed).toEqual([1]);
});

test("an answer that exceeds the window waits with its trailers, and resumes where it stopped", () => {
  const { sender, output, frames, closed, sent } = open();
  sender.initialWindow = 0;
  const stream = new Stream(1, sender);
  stream.answer(Buffer.alloc(3), Buffer.alloc(5), Buffer.alloc(4));
  expect([sent(1), closed]).toEqual([0, []]);
  sender.widenStream(stream, 4);
  expect([sent(1), closed]).toEqual([4, []]);
  sender.widenStream(stream, 6);
  expect([sent(1), closed]).toEqual([10, [1]]);
  output.flush();
  expect(frames.at(-1)).toEqual({ type: frameTypes.headers, streamId: 1, length: 4, ends: true });
});

const step = fc.oneof(
  fc.record({ send: fc.nat(3), bytes: fc.nat(40_000) }),
  fc.record({ widen: fc.integer({ min: 1, max: 50_000 }) }),
  fc.record({ widenStream: fc.nat(3), by: fc.integer({ min: 1, max: 50_000 }) }),
  fc.record({ forget: fc.nat(3) }),
);

test("no stream exceeds its window, all streams stay within the connection's, and nothing that fits waits", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { sender, sent } = open();
      const streams = [1, 3, 5, 7].map((id) => new Stream(id, sender));
      let window = INITIAL_WINDOW;
      const windows = streams.map(() => INITIAL_WINDOW);
      const asked = streams.map(() => 0);
      for (const one of steps) {
        if ("send" in one) {
          asked[one.send]! += one.bytes;
          streams[one.send]!.data(Buffer.alloc(one.bytes));
        } else if ("widen" in one) {
          window += one.widen;
          sender.widen(one.widen);
        } else if ("widenStream" in one) {
          windows[one.widenStream]! += one.by;
          sender.widenStream(streams[one.widenStream]!, one.by);
        } else {
          sender.forget(streams[one.forget]!);
          asked[one.forget] = sent(streams[one.forget]!.id);
        }
        expect(sent()).toBeLessThanOrEqual(window);
        for (const [i, { id }] of streams.entries()) {
          const mine = sent(id);
          expect(mine).toBeLessThanOrEqual(windows[i]!);
          if (sent() < window) expect(mine).toBe(Math.min(asked[i]!, windows[i]!));
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("a wider connection window wakes the streams that wait for it, not those that wait for their own window", () => {
  const { sender, sent } = open();
  sender.initialWindow = 0;
  const shut = Array.from({ length: 1_000 }, (_, i) => new Stream(2 * i + 1, sender));
  for (const stream of shut) stream.data(Buffer.alloc(10));
  sender.initialWindow = 10;
  const first = new Stream(2_001, sender);
  sender.widenStream(first, INITIAL_WINDOW);
  first.data(Buffer.alloc(INITIAL_WINDOW));
  const waiting = [2_003, 2_005].map((id) => new Stream(id, sender));
  for (const stream of waiting) stream.data(Buffer.alloc(10));
  let asked = 0;
  const ask = (): number => {
    asked++;
    return 0;
  };
  for (const stream of shut) Object.defineProperty(stream, "sendWindow", { get: ask });
  for (let i = 0; i < 20; i++) sender.widen(1);
  expect([asked, sent(2_003), sent(2_005)]).toEqual([0, 10, 10]);
});

test("onSent is called once the waiting data has been sent", () => {
  const { sender, sent } = open();
  sender.initialWindow = 0;
  const stream = new Stream(1, sender);
  let times = 0;
  expect(stream.data(Buffer.alloc(10))).toBe(false);
  stream.onSent = () => void times++;
  sender.widenStream(stream, 4);
  expect([sent(1), times]).toEqual([4, 0]);
  sender.widenStream(stream, 100);
  expect([stream.data(Buffer.alloc(10)), sent(1), times]).toEqual([true, 20, 1]);
});

test("data written after a stream's last frame is dropped", () => {
  const { sender, sent, closed, overflows } = open();
  sender.initialWindow = 0;
  for (let i = 0; i < 100; i++) {
    const stream = new Stream(2 * i + 1, sender);
    stream.data(Buffer.alloc(1), { isLast: true });
    stream.data(Buffer.alloc(2 ** 20));
    sender.widenStream(stream, 1);
  }
  expect([sent(), closed.length, overflows()]).toEqual([100, 100, 0]);
});

test("an empty frame is sent even if SETTINGS made the window negative", () => {
  const { sender, output, frames } = open();
  const stream = new Stream(1, sender);
  sender.widenStream(stream, -2 * INITIAL_WINDOW);
  stream.data(Buffer.alloc(0), { isLast: true });
  output.flush();
  expect(frames).toEqual([{ type: frameTypes.data, streamId: 1, length: 0, ends: true }]);
});

test("more than 8 MiB of answers waiting for a window are an overflow", () => {
  const { sender, overflows } = open();
  sender.initialWindow = 0;
  const streams = Array.from({ length: 9 }, (_, i) => new Stream(2 * i + 1, sender));
  for (const stream of streams.slice(0, 8)) stream.data(Buffer.alloc(2 ** 20));
  expect(overflows()).toBe(0);
  streams[8]!.data(Buffer.alloc(1));
  expect(overflows()).toBe(1);
});

test("a message counts whole until its last byte is sent, as it is held in memory", () => {
  const { sender, sent, overflows } = open();
  sender.widen(2 ** 24);
  sender.initialWindow = 2 ** 20 - 1;
  const message = Buffer.alloc(2 ** 20);
  const streams = Array.from({ length: 9 }, (_, i) => new Stream(2 * i + 1, sender));
  for (const stream of streams.slice(0, 8)) stream.data(message);
  expect([sent(), overflows()]).toEqual([8 * (2 ** 20 - 1), 0]);
  streams[8]!.data(message);
  expect(overflows()).toBe(1);
});

test("beyond 64 MiB over all connections, those with more than their share of it overflow", () => {
  const all = new WaitingData();
  const message = Buffer.alloc(2 ** 20);
  const connections = Array.from({ length: 17 }, () => {
    const { sender, overflows } = open(all);
    sender.initialWindow = 0;
    const stream = new Stream(1, sender);
    return { sender, stream, overflows, add: () => void stream.data(message) };
  });
  const [small, ...large] = connections;
  for (const { add } of large) for (let i = 0; i < 4; i++) add();
  expect([all.bytes, all.connections]).toEqual([64 * 2 ** 20, 16]);
  small!.add();
  expect(connections.map(({ overflows }) => overflows())).toEqual(connections.map(() => 0));
  large[0]!.add();
  expect(connections.map(({ overflows }) => overflows())).toEqual(connections.map((_, i) => (i === 1 ? 1 : 0)));
  for (const { sender, stream } of connections) sender.forget(stream);
  expect([all.bytes, all.connections]).toEqual([0, 0]);
});

test("a window above 2^31-1 is refused", () => {
  const { sender } = open();
  const stream = new Stream(1, sender);
  expect(sender.widenStream(stream, 2 ** 31 - 1)).toBe(false);
  expect(() => sender.widen(2 ** 31 - 1)).toThrow("2^31-1");
});
