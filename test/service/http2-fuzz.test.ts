/**
 * Frames at random on real sockets, whole calls and streams among them: nothing may end the process, hang it, or keep a connection for ever.
 * And messages at random through a stream and back. And h2spec, the conformance suite for HTTP/2 servers. Header blocks at random: `decode-headers.test.ts`.
 */
import { execFile } from "node:child_process";
import type { Duplex } from "node:stream";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { flags, frameTypes, INITIAL_WINDOW } from "../../packages/server/src/grpc/http2/protocol.js";
import { components, whyMissing } from "../../scripts/system-components.mjs";
import { randomOf } from "../harness/random.js";
import {
  frame,
  HEAD,
  halfMessage,
  headOf,
  isServing,
  literal,
  MESSAGE,
  messageOf,
  number,
  paths,
  RawPeer,
  type Started,
  startTransport,
  wholeCall,
} from "./http2-peer.js";

const FRAMES = Number(process.env.SLUICE_TEST_FRAMES ?? 100_000);
const SEED = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const FRAMES_A_CONNECTION = 40;
/** Connections at once. */
const LANES = 8;
/** Of a connection's calls. */
const STREAM_SHARE = 0.3;
/** Of a connection's frames: more would end most connections at once, and what follows would not be read. */
const WILD_SHARE = 0.02;
const LAST_STREAM = 2 ** 31 - 3;

let service: Started;
beforeAll(async () => {
  service = await startTransport({ onStream: echo });
});
afterAll(() => service.stop());

const random = randomOf(SEED);
const below = (end: number): number => Math.floor(random() * end);
const oneOf = <T>(values: readonly T[]): T => values[below(values.length)]!;

const fixedPayloads = [
  HEAD,
  MESSAGE,
  Buffer.alloc(0),
  Buffer.alloc(8),
  number(1),
  number(2 ** 31 - 1),
  Buffer.alloc(16_384),
];
const payloads: readonly (() => Buffer)[] = [
  () => Buffer.from(Array.from({ length: below(31) }, () => below(256))),
  () => oneOf(fixedPayloads),
  () => {
    const changed = Buffer.from(oneOf([HEAD, MESSAGE]));
    changed[below(changed.length)] = below(256);
    return changed;
  },
  () => Buffer.concat([HEAD, literal("x-any", Array.from({ length: below(21) }, () => oneOf([..."aZ 9~é"])).join(""))]),
];
const anyStream = (): number => (random() < 0.5 ? oneOf([0, 1, 2, 3, 5, 7, 2 ** 31 - 1]) : below(41));
const anyBits = (): number => (random() < 0.5 ? oneOf([0, 1, 4, 5, 8, 0x20, 0x2d]) : below(256));
const wildFrame = (): Buffer => frame(below(12), anyBits(), anyStream(), oneOf(payloads)());

const requests: readonly (() => Buffer)[] = [
  () => messageOf("\x3a\x00"),
  () => messageOf(""),
  () => messageOf("\x0a\x01d\x12\x0c\x0a\x08\x0a\x06\x0a\x01k\x12\x01v\x18\x01"),
  () => messageOf(Buffer.from(Array.from({ length: below(31) }, () => below(256)))),
  () => messageOf(gzipSync(Buffer.alloc(below(100_000))), 1),
  () => halfMessage(below(2 ** 20), below(20)),
];
const heads = Object.values(paths).flatMap((path) => [headOf(path), headOf(path, { "grpc-encoding": "gzip" })]);

/** A stream whose messages are cut anywhere, and that may never end. */
function* streamOf(id: number): Generator<Buffer> {
  yield frame(frameTypes.headers, flags.endHeaders, id, oneOf(heads));
  let rest = Buffer.concat(Array.from({ length: below(5) }, () => oneOf(requests)()));
  while (rest.length > 0) {
    const cut = 1 + below(Math.min(rest.length, 16_384));
    yield frame(frameTypes.data, 0, id, rest.subarray(0, cut));
    rest = rest.subarray(cut);
  }
  if (random() < 0.5) yield frame(frameTypes.data, flags.endStream, id);
}

/** Frames that a client may send, streams in order: calls whole, in parts, reset and forgotten, windows, pings, settings, unknown types. */
function* lawfulFrames(): Generator<Buffer> {
  for (let id = 1; ; id += 2) {
    if (random() < STREAM_SHARE) {
      yield* streamOf(id);
      continue;
    }
    const isOneFrame = random() < 0.7;
    if (isOneFrame) yield frame(frameTypes.headers, flags.endHeaders, id, HEAD);
    else {
      const cut = below(HEAD.length);
      yield frame(frameTypes.headers, 0, id, HEAD.subarray(0, cut));
      yield frame(frameTypes.continuation, flags.endHeaders, id, HEAD.subarray(cut));
    }
    const cut = below(MESSAGE.length);
    const rest: readonly (() => Buffer[])[] = [
      () => [frame(frameTypes.data, flags.endStream, id, MESSAGE)],
      () => [
        frame(frameTypes.data, 0, id, MESSAGE.subarray(0, cut)),
        frame(frameTypes.data, flags.endStream, id, MESSAGE.subarray(cut)),
      ],
      () => [frame(frameTypes.data, 0, id, MESSAGE.subarray(0, cut)), frame(frameTypes.rstStream, 0, id, number(8))],
      () => [frame(frameTypes.windowUpdate, 0, oneOf([0, id]), number(1 + below(1_000)))],
      () => [frame(frameTypes.ping, oneOf([0, 1]), 0, Buffer.alloc(8, below(256)))],
      () => [frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, below(256), below(256)]))],
      () => [frame(11 + below(200), anyBits(), anyStream(), oneOf(payloads)())],
    ];
    yield* oneOf(rest)();
    if (random() < 0.5) yield* oneOf(rest.slice(3))();
  }
}

function framesOfConnection(): Buffer {
  const lawful = lawfulFrames();
  const frames = Array.from({ length: FRAMES_A_CONNECTION }, () =>
    random() < WILD_SHARE ? wildFrame() : lawful.next().value,
  );
  // A ping shows that all was read, and a call that the connection still serves, if it lives.
  return Buffer.concat([...frames, frame(frameTypes.ping, 0, 0, Buffer.from("the end!")), wholeCall(LAST_STREAM)]);
}

test(`${FRAMES} frames at random (seed ${SEED}) leave the service answering, and every connection that ended by a mistake says which`, async () => {
  let left = Math.ceil(FRAMES / FRAMES_A_CONNECTION);
  let ended = 0;
  let lived = 0;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      const peer = await RawPeer.connect(service.port);
      peer.send(framesOfConnection());
      const isOver = (): boolean => peer.of(frameTypes.ping).some(({ payload }) => payload.toString() === "the end!");
      await peer.until(() => isOver() || peer.of(frameTypes.goaway).length > 0).catch(() => undefined);
      if (peer.goaway !== undefined) ended++;
      else if (isOver()) lived++;
      peer.destroy();
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  console.log(`${lived} connections lived, ${ended} ended by a mistake, ${service.calls.length} calls were decided`);
  // Each kind is a fair share, or the frames behind the first mistake were never read.
  expect(Math.min(lived, ended)).toBeGreaterThan(FRAMES / FRAMES_A_CONNECTION / 10);
  expect(service.calls.length).toBeGreaterThan(FRAMES / 40);
  expect(await isServing(service.port)).toBe(true);
  expect(service.mistakes.length).toBeGreaterThanOrEqual(ended);
  // Whatever came of them, no handler failed, and no stream is left.
  expect([service.failures, service.quotas.counts]).toEqual([[], { streams: 0, buckets: 0 }]);
});

/** Answers each message with itself, and now and then asks for no more until the next turn. */
function echo(call: Duplex): void {
  call.on("end", () => call.end());
  call.on("data", (message: Buffer) => {
    call.write(message);
    if (random() > 0.2) return;
    call.pause();
    setImmediate(() => call.resume());
  });
}

/** Sends as its windows allow, and opens them a little at a time. */
async function sendThrough(sent: Buffer): Promise<void> {
  let opened = below(3_000);
  const peer = await RawPeer.connect(service.port, { settings: Buffer.concat([Buffer.of(0, 4), number(opened)]) });
  peer.send(frame(frameTypes.headers, flags.endHeaders, 1, headOf(paths.own)));
  let allowed = INITIAL_WINDOW;
  let at = 0;
  let seen = 0;
  let received = 0;
  const goOn = (): boolean => {
    for (; seen < peer.frames.length; seen++) {
      const { type, streamId, payload } = peer.frames[seen]!;
      if (streamId === 1 && type === frameTypes.windowUpdate) allowed += payload.readUInt32BE();
      if (type === frameTypes.data) received += payload.length;
    }
    for (const end = Math.min(sent.length, allowed); at < end; ) {
      const part = sent.subarray(at, at + Math.min(1 + below(16_384), end - at));
      at += part.length;
      peer.send(frame(frameTypes.data, at === sent.length ? flags.endStream : 0, 1, part));
    }
    if (received === opened || random() < 0.3) {
      const more = 1_024 + below(20_000);
      opened += more;
      peer.send(frame(frameTypes.windowUpdate, 0, 1, number(more)));
    }
    return peer.answered.includes(1);
  };
  await peer.until(goOn);
  const back = Buffer.concat(peer.of(frameTypes.data, 1).map(({ payload }) => payload));
  expect([peer.statusOf(1), back.equals(sent)]).toEqual([0, true]);
  peer.destroy();
}

test(`messages at random (seed ${SEED}) come back through a stream as they were sent, however frames and windows cut them`, async () => {
  const sizes = [0, 1, 5, 100, 5_000, 100_000];
  const anyMessage = (): Buffer => messageOf(Buffer.alloc(oneOf([...sizes, below(20_000)]), below(256)));
  const bodies = Array.from({ length: 24 }, () => Buffer.concat(Array.from({ length: 1 + below(40) }, anyMessage)));
  while (bodies.length > 0) await Promise.all(bodies.splice(0, LANES).map(sendThrough));
});

test.skipIf(whyMissing("h2spec"))("h2spec finds no failure", async () => {
  const args = ["-h", "127.0.0.1", "-p", String(service.port), "-o", "10"];
  const { stdout } = await promisify(execFile)(components.h2spec.find()!, args).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout.trim().split("\n").at(-1)).toMatch(/^(\d+) tests, \1 passed, 0 skipped, 0 failed$/);
});
