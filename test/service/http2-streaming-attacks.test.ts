/** What a hostile peer can do through calls that stream: health watches, reflection and quotas, of which the first two ask for no token. */

import type { Duplex } from "node:stream";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { errorCodes, flags, frameTypes } from "../../packages/server/src/grpc/http2/protocol.js";
import { grpcCodes } from "../../packages/server/src/grpc/statuses.js";
import {
  frame,
  HEAD,
  halfMessage,
  headOf,
  messageOf,
  number,
  paths,
  RawPeer,
  transportOfTest,
  wholeCall,
} from "./http2-peer.js";

const { endHeaders, endStream } = flags;
const start = transportOfTest();

const open = (id: number, path: string, more?: Record<string, string>): Buffer =>
  frame(frameTypes.headers, endHeaders, id, headOf(path, more));
const data = (id: number, bytes: Buffer, marks = 0): Buffer => frame(frameTypes.data, marks, id, bytes);
const initialWindow = (bytes: number) => Buffer.concat([Buffer.of(0, 4), number(bytes)]);
const WINDOW = 65_535;
const WIDE = 2 ** 30;
/** `list_services` of reflection. */
const LIST = messageOf("\x3a\x00");
/** A call's whole window of requests, in frames. */
const listsOfWindow = (id: number): Buffer[] => {
  const lists = Buffer.concat(Array.from({ length: Math.floor(WINDOW / LIST.length) }, () => LIST));
  return [0, 1, 2, 3].map((i) => data(id, lists.subarray(i * 16_384, (i + 1) * 16_384)));
};
/** How much the peer was allowed to send on a stream, beyond the window that it began with. */
const allowed = (peer: RawPeer, id: number): number =>
  peer.of(frameTypes.windowUpdate, id).reduce((sum, { payload }) => sum + payload.readUInt32BE(), 0);

test.each([
  ["while reflection is being loaded", false],
  ["when reflection is there", true],
])("a message that is no request of reflection ends its call alone: %s", async (_when, isLoaded) => {
  const { port, failures } = await start();
  const peer = await RawPeer.connect(port);
  peer.send(open(1, paths.reflection));
  if (isLoaded) {
    peer.send(data(1, LIST));
    await peer.until(() => peer.of(frameTypes.data, 1).length > 0);
  }
  peer.send(data(1, messageOf("\x0a")));
  await peer.until(() => peer.answered.includes(1));
  expect([peer.statusOf(1), failures]).toEqual([grpcCodes.invalidArgument, []]);
  peer.send(wholeCall(3));
  await peer.until(() => peer.answered.includes(3));
  peer.destroy();
});

test("a stream that ends within a message is told so", async () => {
  const { port } = await start();
  const peer = await RawPeer.connect(port);
  peer.send(open(1, paths.reflection), data(1, LIST), data(1, halfMessage(10, 3), endStream));
  await peer.until(() => peer.answered.includes(1));
  expect([peer.statusOf(1), peer.of(frameTypes.data, 1).length]).toEqual([grpcCodes.invalidArgument, 1]);
  peer.destroy();
});

test.each<[string, () => (call: Duplex) => void]>([
  [
    "when it is called",
    () => () => {
      throw new Error("a defect");
    },
  ],
  [
    "at a message",
    () => (call) => {
      call.on("data", () => {
        throw new Error("a defect");
      });
    },
  ],
  ["by a message that it cannot write", () => (call) => void call.on("data", () => call.write({ not: "bytes" }))],
])("a handler that fails %s ends its call, and the failure is reported", async (_when, handler) => {
  const { port, failures } = await start({ onStream: handler() });
  const peer = await RawPeer.connect(port);
  peer.send(open(1, paths.own));
  await peer.isRead();
  peer.send(data(1, messageOf("a")));
  await peer.until(() => peer.answered.includes(1));
  expect([peer.statusOf(1), failures.length]).toEqual([grpcCodes.internal, 1]);
  peer.send(wholeCall(3));
  await peer.until(() => peer.answered.includes(3));
  peer.destroy();
});

test("a unary handler that throws ends its connection, not the process", async () => {
  const { port, failures } = await start({
    onCall: () => {
      throw new Error("a defect");
    },
  });
  const peer = await RawPeer.connect(port);
  peer.send(wholeCall(1));
  await peer.closed();
  expect([peer.goaway, failures.length]).toEqual(["internalError", 1]);
});

test.each([
  ["a second message", Buffer.concat([messageOf("\x0a\x00"), messageOf("\x0a\x00")])],
  ["the first byte of a second message", Buffer.concat([messageOf("\x0a\x00"), Buffer.of(0)])],
  ["thousands of empty messages and a part of one", Buffer.alloc(3_276 * 5 + 3)],
  ["bombs of gzip", Buffer.concat(Array.from({ length: 10 }, () => messageOf(gzipSync(Buffer.alloc(2 ** 20)), 1)))],
])("a call of one message that sends %s is refused before its end", async (_what, bytes) => {
  const { port } = await start();
  const peer = await RawPeer.connect(port);
  for (const [id, head] of [
    [1, headOf(paths.watch, { "grpc-encoding": "gzip" })],
    [3, headOf("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", { "grpc-encoding": "gzip" })],
  ] as const) {
    peer.send(frame(frameTypes.headers, endHeaders, id, head), data(id, bytes));
    await peer.isRead();
    expect([id, peer.statusOf(id)]).toEqual([id, grpcCodes.invalidArgument]);
  }
  peer.destroy();
});

test("messages that a handler has not asked for wait in the window of their call, however their frames are cut", async () => {
  const { port } = await start();
  const peer = await RawPeer.connect(port);
  // Each frame ends within a prefix.
  const part = Buffer.alloc(3_276 * 5 + 3);
  peer.send(open(1, paths.own));
  for (let i = 0; i < 4; i++) peer.send(data(1, part));
  await peer.isRead();
  expect(allowed(peer, 1)).toBe(0);
  peer.destroy();
});

test("a client may send on when the handler has taken what was sent, and all arrives in order", async () => {
  const seen: Buffer[] = [];
  let call: Duplex | undefined;
  const { port } = await start({
    onStream: (stream) => {
      call = stream;
    },
  });
  const peer = await RawPeer.connect(port);
  const texts = Array.from({ length: 6_000 }, (_, i) => String(i));
  const all = Buffer.concat(texts.map((text) => messageOf(text)));
  peer.send(open(1, paths.own));
  for (let at = 0; at < WINDOW - 16_384; at += 1_000)
    peer.send(data(1, all.subarray(at, Math.min(at + 1_000, all.length))));
  await peer.isRead();
  expect(allowed(peer, 1)).toBe(0);
  call!.on("data", (message: Buffer) => seen.push(message));
  await peer.until(() => allowed(peer, 1) > 0);
  await peer.isRead();
  expect(seen.join()).toBe(texts.slice(0, seen.length).join());
  expect(seen.length).toBeGreaterThan(4_000);
  peer.destroy();
});

test("a message that begins in the frame that ends another one waits for room as any other", async () => {
  const bytes = 2 ** 18;
  const halfSent = { bytesPerConnection: bytes, bytesInAll: 2 ** 26, calls: 4_096 };
  const { port } = await start({ halfSent, onStream: (call) => call.resume() });
  const peer = await RawPeer.connect(port);
  const [first, second] = [messageOf("x".repeat(16_000)), halfMessage(bytes, 10_000)];
  const both = Buffer.concat([first, second]);
  const ids = Array.from({ length: 10 }, (_, i) => 2 * i + 1);
  for (const id of ids) {
    peer.send(open(id, paths.own), data(id, both.subarray(0, 15_000)), data(id, both.subarray(15_000)));
    // The second message has what its window still lets in.
    await peer.isRead();
    for (let i = 0; i < 2; i++) peer.send(data(id, Buffer.alloc(15_000)));
  }
  await peer.isRead();
  // What came with the first message is allowed again before the second is looked at.
  expect(ids.filter((id) => allowed(peer, id) > both.length)).toEqual([1]);
  peer.destroy();
});

test("a message that is whole keeps its room until its call is, so that no more are held", async () => {
  const bytes = 2 ** 18;
  const halfSent = { bytesPerConnection: bytes, bytesInAll: 2 ** 26, calls: 4_096 };
  const { port, calls } = await start({ halfSent });
  const peer = await RawPeer.connect(port);
  const ids = [1, 3, 5];
  const whole = halfMessage(bytes, bytes);
  // A field that nobody reads: `1a`, its length, zeros.
  whole.set([0x7a, 0xfb, 0xff, 0x0f], 5);
  const sent = new Map(ids.map((id) => [id, 0]));
  const sendAllowed = (id: number): void => {
    const end = Math.min(whole.length, WINDOW + allowed(peer, id));
    for (let at = sent.get(id)!; at < end; at += 16_384)
      peer.send(data(id, whole.subarray(at, Math.min(end, at + 16_384))));
    sent.set(id, end);
  };
  for (const id of ids) peer.send(frame(frameTypes.headers, endHeaders, id, HEAD));
  for (let i = 0; i < 10; i++) {
    for (const id of ids) sendAllowed(id);
    await peer.isRead();
  }
  expect(ids.map((id) => sent.get(id))).toEqual([whole.length, WINDOW, WINDOW]);
  peer.send(data(1, Buffer.alloc(0), endStream));
  for (let i = 0; i < 10; i++) {
    for (const id of ids) sendAllowed(id);
    await peer.isRead();
  }
  expect([ids.map((id) => sent.get(id)), calls.length]).toEqual([[whole.length, whole.length, WINDOW], 1]);
  peer.destroy();
});

test.each([
  ["Watch", paths.watch],
  ["reflection", paths.reflection],
  ["quotas", paths.quotas],
])("rapid reset of %s: a call that is begun and reset earns nothing, and ends the connection", async (_what, path) => {
  const { port, quotas } = await start();
  const peer = await RawPeer.connect(port);
  let sent = 0;
  for (; sent < 20_000 && !peer.isClosed; sent++) {
    const id = 2 * sent + 1;
    peer.send(open(id, path), frame(frameTypes.rstStream, 0, id, number(errorCodes.cancel)));
    if (sent % 500 === 0) await new Promise(setImmediate);
  }
  await peer.closed();
  expect([peer.goaway, quotas.counts.streams]).toEqual(["enhanceYourCalm", 0]);
});

test.each<[string, (id: number) => Buffer[]]>([
  ["a window of 0", (id) => [frame(frameTypes.windowUpdate, 0, id, number(0))]],
  ["a window above the most", (id) => [frame(frameTypes.windowUpdate, 0, id, number(2 ** 31 - 1))]],
  ["a second head", (id) => [frame(frameTypes.headers, endHeaders, id, HEAD)]],
  ["a priority of itself", (id) => [frame(frameTypes.priority, 0, id, Buffer.concat([number(id), Buffer.of(0)]))]],
])("resets that %s provokes are charged as the client's own", async (_what, mistake) => {
  const { port, mistakes } = await start();
  const peer = await RawPeer.connect(port);
  for (let i = 0; i < 20_000 && !peer.isClosed; i++) {
    peer.send(open(2 * i + 1, paths.watch), ...mistake(2 * i + 1));
    if (i % 500 === 0) await new Promise(setImmediate);
  }
  await peer.closed();
  expect([peer.goaway, mistakes]).toEqual(["enhanceYourCalm", ["a flood of frames"]]);
});

/** A handler as reflection's: it answers each message without looking whether the answers leave. */
function answering(answerBytes: number) {
  const counts = { handled: 0 };
  const onStream = (call: Duplex): void => {
    call.on("end", () => call.end());
    call.on("data", () => {
      counts.handled++;
      call.write(Buffer.alloc(answerBytes));
    });
  };
  return { counts, onStream };
}

test("requests of a client that opens no window for the answers are not handled ahead; they are when it does", async () => {
  const { counts, onStream } = answering(100);
  const { port } = await start({ onStream });
  const peer = await RawPeer.connect(port, { settings: initialWindow(0) });
  peer.send(open(1, paths.own), ...listsOfWindow(1));
  await peer.isRead();
  expect([counts.handled, allowed(peer, 1)]).toEqual([1, 0]);
  peer.send(frame(frameTypes.settings, 0, 0, initialWindow(WIDE)));
  await peer.until(() => allowed(peer, 1) > 0);
  await peer.isRead();
  expect(counts.handled).toBe(Math.floor(WINDOW / LIST.length));
  peer.destroy();
});

test("a stream whose answers are not read in time is reset, if its client asks on", async () => {
  const { onStream } = answering(100);
  const { port } = await start({ onStream, sendWithinMs: 100 });
  const peer = await RawPeer.connect(port, { settings: initialWindow(0) });
  peer.send(open(1, paths.own), data(1, LIST), open(3, paths.own), data(3, Buffer.concat([LIST, LIST])));
  await peer.until(() => peer.of(frameTypes.rstStream).length > 0);
  const resets = peer.of(frameTypes.rstStream).map(({ streamId, payload }) => [streamId, payload.readUInt32BE()]);
  expect(resets).toEqual([[3, errorCodes.enhanceYourCalm]]);
  peer.destroy();
});

test("requests of a client that does not read are not handled ahead: 64 KiB of them would ask for many megabytes", async () => {
  const { counts, onStream } = answering(5_000);
  const { port } = await start({ onStream });
  const peer = await RawPeer.connect(port, { settings: initialWindow(WIDE) });
  peer.socket.pause();
  peer.send(open(1, paths.own), ...listsOfWindow(1), data(1, Buffer.alloc(0), endStream));
  // The kernel's buffers take some megabytes on both sides.
  for (let before = -1; counts.handled !== before || counts.handled === 0; ) {
    before = counts.handled;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(counts.handled).toBeLessThan(5_000);
  peer.socket.resume();
  await peer.until(() => peer.answered.includes(1));
  expect(counts.handled).toBe(Math.floor(WINDOW / LIST.length));
  peer.destroy();
});
