/** What a hostile HTTP/2 peer can do to the gRPC port: each known attack, against the real transport, with a bound on what it gets. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { errorCodes, flags, frameTypes } from "../../packages/server/src/grpc/http2/protocol.js";
import { grpcCodes } from "../../packages/server/src/grpc/statuses.js";
import {
  frame,
  HEAD,
  headOf,
  isServing,
  literal,
  MESSAGE,
  messageOf,
  number,
  RawPeer,
  transportOfTest,
  wholeCall,
} from "./http2-peer.js";

const { endHeaders, endStream } = flags;
const start = transportOfTest();

function held(): { gate: () => Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { gate: () => opened, open: () => open() };
}

test("rapid reset: no more than a thousand calls are decided at a time, and a flood of resets ends the connection", async () => {
  const { gate, open } = held();
  const { port, calls } = await start({ gate });
  const peer = await RawPeer.connect(port);
  const reset = (id: number) => frame(frameTypes.rstStream, 0, id, number(errorCodes.cancel));
  for (let i = 0; i < 20_000 && !peer.isClosed; i++) peer.send(wholeCall(2 * i + 1), reset(2 * i + 1));
  await peer.closed();
  expect([peer.goaway, calls.length]).toEqual(["enhanceYourCalm", 1_000]);
  expect(calls.every(({ cancelled }) => cancelled)).toBe(true);
  open();
  expect(await isServing(port)).toBe(true);
});

test("a client that resets calls one after the other, as one with a short timeout does, is served on", async () => {
  const { port, calls } = await start();
  const peer = await RawPeer.connect(port);
  for (let i = 0; i < 10_000; i++) {
    const id = 2 * i + 1;
    peer.send(wholeCall(id), frame(frameTypes.rstStream, 0, id, number(errorCodes.cancel)));
    if (i % 500 === 0) await new Promise(setImmediate);
  }
  peer.send(wholeCall(20_001));
  await peer.until(() => peer.answered.includes(20_001));
  expect([calls.length, peer.goaway]).toEqual([10_001, undefined]);
  peer.destroy();
});

test.each<[string, () => Buffer]>([
  ["pings", () => frame(frameTypes.ping, 0, 0, Buffer.alloc(8))],
  ["settings", () => frame(frameTypes.settings, 0, 0)],
  [
    "windows that open and close",
    () =>
      frame(
        frameTypes.settings,
        0,
        0,
        Buffer.concat(Array.from({ length: 2_000 }, (_, i) => Buffer.concat([Buffer.of(0, 4), number(i % 2)]))),
      ),
  ],
])("a flood of %s ends the connection, and its answers are bounded", async (_what, one) => {
  const { port, mistakes } = await start();
  const peer = await RawPeer.connect(port);
  const bytes = one();
  const batch = Buffer.concat(Array.from({ length: 100 }, () => bytes));
  const sinceMs = performance.now();
  for (let i = 0; i < 100 && !peer.isClosed; i++) {
    peer.send(batch);
    await new Promise(setImmediate);
  }
  await peer.closed();
  expect([peer.goaway, mistakes]).toEqual(["enhanceYourCalm", ["a flood of frames"]]);
  // The guard's 2000, what it earns in the time that this took, and the frames of a greeting and a goodbye.
  const earned = ((performance.now() - sinceMs) / 1_000) * 100;
  expect(peer.frames.length).toBeLessThan(2_010 + earned);
  expect(await isServing(port)).toBe(true);
});

test.each<[string, () => Buffer, (() => Buffer[])?]>([
  ["acknowledged pings", () => frame(frameTypes.ping, flags.ack, 0, Buffer.alloc(8))],
  ["acknowledged settings", () => frame(frameTypes.settings, flags.ack, 0)],
  ["goodbyes", () => frame(frameTypes.goaway, 0, 0, Buffer.alloc(8))],
  ["frames of an unknown type", () => frame(0xbb, 0, 0)],
  ["priorities", () => frame(frameTypes.priority, 0, 5, Buffer.alloc(5))],
  ["windows opened byte by byte", () => frame(frameTypes.windowUpdate, 0, 0, number(1))],
  ["a call's windows opened byte by byte", () => frame(frameTypes.windowUpdate, 0, 1, number(1)), openCall],
  [
    "windows of a call that has ended",
    () => frame(frameTypes.windowUpdate, 0, 1, number(16_384)),
    () => [wholeCall(1)],
  ],
  ["empty DATA", () => frame(frameTypes.data, 0, 1), openCall],
  ["DATA that is padding", () => frame(frameTypes.data, flags.padded, 1, Buffer.of(0)), openCall],
  ["DATA of a call that we reset", () => frame(frameTypes.data, 0, 1, MESSAGE), resetCall],
  ["trailers of a call that we reset", () => frame(frameTypes.headers, endHeaders | endStream, 1), resetCall],
])("a flood of %s ends the connection", async (_what, one, before = () => []) => {
  const { port, mistakes } = await start();
  const peer = await RawPeer.connect(port);
  peer.send(...before());
  const batch = Buffer.concat(Array.from({ length: 100 }, one));
  for (let i = 0; i < 200 && !peer.isClosed; i++) {
    peer.send(batch);
    await new Promise(setImmediate);
  }
  await peer.closed();
  expect([peer.goaway, mistakes]).toEqual(["enhanceYourCalm", ["a flood of frames"]]);
});

function openCall(): Buffer[] {
  return [frame(frameTypes.headers, endHeaders, 1, HEAD)];
}

/** It is answered before it is whole. */
function resetCall(): Buffer[] {
  return [frame(frameTypes.headers, endHeaders, 1, headOf("/nothing"))];
}

test("a client that acknowledges every answer's bytes, and pings with each call, is served on", async () => {
  const { port, calls } = await start();
  const peer = await RawPeer.connect(port);
  for (let i = 0; i < 5_000; i++) {
    const id = 2 * i + 1;
    const windows = [0, id].map((one) => frame(frameTypes.windowUpdate, 0, one, number(7)));
    peer.send(wholeCall(id), ...windows, frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
    if (i % 500 === 0) await new Promise(setImmediate);
  }
  peer.send(wholeCall(10_001));
  await peer.until(() => peer.answered.includes(10_001));
  expect([calls.length, peer.goaway]).toEqual([5_001, undefined]);
  peer.destroy();
});

test.each([
  ["empty", Buffer.alloc(0)],
  ["large", Buffer.alloc(16_384)],
])("CONTINUATION without end, %s frames: the connection ends within 33", async (_what, part) => {
  const { port } = await start();
  const peer = await RawPeer.connect(port);
  peer.send(frame(frameTypes.headers, 0, 1, HEAD));
  for (let i = 0; i < 50; i++) peer.send(frame(frameTypes.continuation, 0, 1, part));
  await peer.closed();
  expect(peer.goaway).toBe("enhanceYourCalm");
});

test("an HPACK bomb: a field of 4 KiB named ten thousand times is refused with 431, and costs no memory", async () => {
  const { port, calls } = await start();
  const peer = await RawPeer.connect(port);
  const value = "x".repeat(3_900);
  const large = Buffer.concat([
    Buffer.of(0x40, 1),
    Buffer.from("a"),
    Buffer.of(127, ((3_900 - 127) % 128) | 128, Math.floor((3_900 - 127) / 128)),
    Buffer.from(value),
  ]);
  const bomb = Buffer.concat([HEAD, large, Buffer.alloc(10_000, 0xbe)]);
  peer.send(frame(frameTypes.headers, endHeaders | endStream, 1, bomb));
  await peer.until(() => peer.answered.includes(1));
  expect(peer.of(frameTypes.headers, 1)[0]!.payload.toString("latin1")).toContain("431");
  peer.send(wholeCall(3));
  await peer.until(() => peer.answered.includes(3));
  expect(calls.length).toBe(1);
  peer.destroy();
});

test("a window of 0 holds answers back; their bytes are bounded, and what fits is sent when it opens", async () => {
  const { port } = await start({ answerBytes: 100 });
  const shut = Buffer.concat([Buffer.of(0, 4), number(0)]);
  const peer = await RawPeer.connect(port, { settings: shut });
  for (let i = 0; i < 1_000; i++) peer.send(wholeCall(2 * i + 1));
  await peer.until(() => peer.of(frameTypes.headers).length === 1_000);
  expect([peer.of(frameTypes.data).length, peer.answered.length]).toEqual([0, 0]);
  peer.send(wholeCall(2_001));
  await peer.until(() => peer.of(frameTypes.rstStream, 2_001).length === 1);
  peer.send(frame(frameTypes.settings, 0, 0, Buffer.concat([Buffer.of(0, 4), number(65_535)])));
  await peer.until(() => peer.answered.length === 1_000);
  peer.destroy();
});

test("large answers that no window takes end the connection at 8 MiB", async () => {
  const { port } = await start({ answerBytes: 100_000 });
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(0)]) });
  for (let i = 0; i < 200; i++) peer.send(wholeCall(2 * i + 1));
  await peer.closed();
  expect(peer.goaway).toBe("enhanceYourCalm");
});

test("answers that no window takes: beyond 64 MiB over all connections, those with more than their share end", async () => {
  const { port, mistakes } = await start({ answerBytes: 2 ** 20 });
  const shut = { settings: Buffer.concat([Buffer.of(0, 4), number(0)]) };
  const peers = await Promise.all(Array.from({ length: 12 }, () => RawPeer.connect(port, shut)));
  for (let id = 1; id < 15; id += 2) {
    for (const peer of peers) peer.send(wholeCall(id));
    await Promise.all(peers.map((peer) => peer.isRead().catch(() => undefined)));
  }
  const ended = mistakes.length;
  expect(ended).toBeGreaterThan(0);
  expect(ended).toBeLessThan(12);
  for (const peer of peers) peer.destroy();
});

test("an answer that no window takes in time ends its call alone; those of a busy connection that are taken late are sent", async () => {
  const { port, mistakes } = await start({ answerBytes: 100, takeWithinMs: 1_500 });
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(0)]) });
  const widening = (id: number, bytes: number) => frame(frameTypes.windowUpdate, 0, id, number(bytes));
  peer.send(wholeCall(1));
  let id = 3;
  peer.send(wholeCall(id));
  for (; peer.of(frameTypes.rstStream).length === 0; id += 2) {
    // At every moment some answer of the connection waits.
    peer.send(wholeCall(id + 2));
    await peer.until(() => peer.of(frameTypes.headers, id + 2).length === 1);
    // A byte at a time does not take the answer.
    peer.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)), widening(1, 1), widening(id, 1_000));
    await peer.until(() => peer.answered.includes(id) || peer.of(frameTypes.rstStream).length > 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  expect(peer.of(frameTypes.rstStream).map(({ streamId, payload }) => [streamId, payload.readUInt32BE()])).toEqual([
    [1, errorCodes.enhanceYourCalm],
  ]);
  peer.send(widening(id, 1_000));
  await peer.until(() => peer.answered.includes(id));
  expect([peer.goaway, mistakes]).toEqual([undefined, []]);
  peer.destroy();
});

test("windows opened byte by byte: an answer is sent in as many frames, and nothing twice", async () => {
  const { port } = await start({ answerBytes: 20 });
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(0)]) });
  peer.send(wholeCall(1));
  for (let i = 0; i < 40; i++) peer.send(frame(frameTypes.windowUpdate, 0, 1, number(1)));
  await peer.until(() => peer.answered.includes(1));
  const data = peer.of(frameTypes.data, 1);
  expect(data.every(({ payload }) => payload.length === 1)).toBe(true);
  const message = Buffer.concat(data.map(({ payload }) => payload));
  expect(message.readUInt32BE(1)).toBe(message.length - 5);
  peer.destroy();
});

test("a client that never reads is not read from either, once a mebibyte waits for it", async () => {
  const { port, calls } = await start({ answerBytes: 2_000 });
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(2 ** 30)]) });
  peer.socket.pause();
  let sent = 0;
  // The kernel's buffers take some megabytes on both sides.
  for (let quiet = 0; quiet < 20 && sent < 200_000; ) {
    const before = calls.length;
    for (let i = 0; i < 200 && peer.socket.writableLength < 2 ** 20; i++) peer.send(wholeCall(2 * sent++ + 1));
    await new Promise((resolve) => setTimeout(resolve, 5));
    quiet = calls.length === before ? quiet + 1 : 0;
  }
  expect(calls.length).toBeLessThan(sent);
  expect(await isServing(port)).toBe(true);
  peer.socket.resume();
  const last = 2 * sent + 1;
  peer.send(wholeCall(last));
  await peer.until(() => peer.answered.includes(last));
  peer.destroy();
});

test("a client that sends but never reads is cut off, however often it pings", async () => {
  const { transport } = await start({ answerBytes: 2_000, takeWithinMs: 1_500 });
  const ours: Socket[] = [];
  const listener = createServer((socket) => {
    ours.push(socket);
    transport.injectConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(2 ** 30)]) });
  peer.socket.pause();
  // Few enough that it is still read from.
  for (let i = 0; ours[0] === undefined || ours[0].writableLength < 200_000; i++) {
    peer.send(wholeCall(2 * i + 1));
    if (i % 50 === 0) await new Promise(setImmediate);
  }
  const pings = setInterval(() => peer.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8))), 100);
  await once(ours[0]!, "close");
  clearInterval(pings);
  peer.destroy();
  listener.close();
});

test("calls that are never sent whole end at their deadline, and a connection that says nothing is closed", async () => {
  const { port, connections } = await start({ sendWithinMs: 300 });
  const peer = await RawPeer.connect(port);
  peer.send(frame(frameTypes.headers, endHeaders, 1, HEAD));
  peer.send(frame(frameTypes.headers, endHeaders, 3, HEAD), frame(frameTypes.data, 0, 3, MESSAGE.subarray(0, 9)));
  const silent = await RawPeer.connect(port, { preface: false });
  await peer.until(() => peer.answered.length === 2);
  expect(peer.of(frameTypes.headers, 3)[0]!.payload.toString("latin1")).toContain("not sent whole");
  await silent.closed();
  expect(await connections()).toBe(1);
  peer.destroy();
});

test("headers that lie: a length that is not the body's, an unknown method, no gRPC, upper case", async () => {
  const { port, calls } = await start();
  const peer = await RawPeer.connect(port);
  const call = (id: number, head: Buffer) =>
    peer.send(frame(frameTypes.headers, endHeaders, id, head), frame(frameTypes.data, endStream, id, MESSAGE));
  call(1, Buffer.concat([HEAD, literal("content-length", "1")]));
  call(
    3,
    Buffer.concat([Buffer.of(0x83, 0x86), literal(":path", "/nothing"), literal("content-type", "application/grpc")]),
  );
  call(5, Buffer.of(0x83, 0x86, 0x84));
  call(7, Buffer.concat([HEAD, literal("X-Upper", "1")]));
  call(9, HEAD);
  await peer.until(() => peer.answered.includes(9));
  const resets = peer.of(frameTypes.rstStream).map(({ streamId, payload }) => [streamId, payload.readUInt32BE()]);
  expect(resets).toEqual([
    [1, errorCodes.protocolError],
    [3, errorCodes.noError],
    [7, errorCodes.protocolError],
  ]);
  expect(peer.of(frameTypes.headers, 3)[0]!.payload.toString("latin1")).toMatch(/grpc-status.12/s);
  expect(peer.of(frameTypes.headers, 5)[0]!.payload.toString("latin1")).toContain("415");
  expect(calls.length).toBe(1);
  peer.destroy();
});

test.each([
  ["application/grpc", true],
  ["application/grpc+proto", true],
  ["application/grpc;charset=utf-8", true],
  ["Application/GRPC+proto ; v=1", true],
  ["application/grpc-web", false],
  ["application/grpc-web+proto", false],
  ["application/grpc+json", false],
  ["application/grpcx", false],
  ["text/application/grpc", false],
])("content-type %s is gRPC: %s", async (type, isGrpc) => {
  const { port, calls } = await start();
  const peer = await RawPeer.connect(port);
  const head = headOf("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", { "content-type": type });
  peer.send(frame(frameTypes.headers, endHeaders, 1, head), frame(frameTypes.data, endStream, 1, MESSAGE));
  await peer.until(() => peer.answered.includes(1));
  expect(calls.length).toBe(isGrpc ? 1 : 0);
  expect(peer.of(frameTypes.headers, 1)[0]!.payload.toString("latin1").includes("415")).toBe(!isGrpc);
  peer.destroy();
});

test("a message is inflated when its handler asks for it: a bomb that nobody reads costs its bytes", async () => {
  const bomb = messageOf(gzipSync(Buffer.alloc(2 ** 21)), 1);
  let isRead = false;
  const { port, failures } = await start({ onCall: (call) => void (isRead && call.request) });
  const peer = await RawPeer.connect(port);
  const head = headOf("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", { "grpc-encoding": "gzip" });
  for (const id of [1, 3]) {
    isRead = id === 3;
    peer.send(frame(frameTypes.headers, endHeaders, id, head), frame(frameTypes.data, endStream, id, bomb));
    await peer.until(() => peer.answered.includes(id));
  }
  expect([peer.statusOf(1), peer.statusOf(3), failures]).toEqual([0, grpcCodes.resourceExhausted, []]);
  peer.destroy();
});

test("a refusal that waits for a window is sent once, however long it waits", async () => {
  const { port } = await start({ sendWithinMs: 50 });
  const peer = await RawPeer.connect(port, { settings: Buffer.concat([Buffer.of(0, 4), number(0)]) });
  peer.send(frame(frameTypes.headers, endHeaders | endStream, 1, Buffer.of(0x83, 0x86, 0x84)));
  // Late calls are looked for in order: what ends this one has looked at the first.
  peer.send(frame(frameTypes.headers, endHeaders, 3, HEAD));
  await peer.until(() => peer.answered.includes(3));
  expect([peer.of(frameTypes.headers, 1).length, peer.of(frameTypes.data, 1).length]).toEqual([1, 0]);
  peer.send(frame(frameTypes.windowUpdate, 0, 1, number(16_384)));
  await peer.until(() => peer.answered.includes(1));
  expect(peer.of(frameTypes.data, 1).length).toBe(1);
  peer.destroy();
});
