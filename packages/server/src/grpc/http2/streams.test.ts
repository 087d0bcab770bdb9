import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { type Frame, FrameReader } from "./frame-reader.js";
import { Output } from "./output.js";
import { errorCodes, flags, frameTypes, PREFACE } from "./protocol.js";
import { Sender } from "./sender.js";
import type { Stream, StreamReader } from "./stream.js";
import { MOST_STREAMS, OpenStreams, Streams } from "./streams.js";

const POST = Buffer.from("838684", "hex");
const { endHeaders, endStream } = flags;

function open() {
  const sent: string[] = [];
  const names = Object.entries(frameTypes);
  const reader = new FrameReader(({ type, streamId, bytes, from }) => {
    const name = names.find(([, number]) => number === type)![0];
    sent.push(type === frameTypes.rstStream ? `${streamId} reset ${bytes.readUInt32BE(from)}` : `${streamId} ${name}`);
  });
  reader.read(PREFACE);
  const socket = {
    writable: true,
    writableLength: 0,
    on: () => undefined,
    write: (bytes: Buffer) => void reader.read(bytes),
  };
  const output = new Output(socket as unknown as Socket);
  const heard: string[] = [];
  const requests: Stream[] = [];
  let idleWork = 0;
  const sender: Sender = new Sender(output, {
    onLocalClosed: (stream) => streams.localClosed(stream),
    onReset: (stream) => streams.wasReset(stream),
    onOverflow: () => undefined,
  });
  const streams: Streams = new Streams(sender, new OpenStreams(), {
    onRequest(stream) {
      requests.push(stream);
      stream.reader = readerOf(stream.id, heard);
    },
    onIdleWork: () => void idleWork++,
    onRemoved: () => undefined,
  });
  const headers = (streamId: number, marks = 0, block = POST) =>
    streams.takeHeaders(frame(frameTypes.headers, { streamId, marks: endHeaders | marks, bytes: block }));
  const data = (streamId: number, bytes: number, marks = 0) =>
    streams.takeData(frame(frameTypes.data, { streamId, marks, bytes: Buffer.alloc(bytes) }));
  const reset = (streamId: number) =>
    streams.takeReset(frame(frameTypes.rstStream, { streamId, marks: 0, bytes: Buffer.alloc(4) }));
  const widen = (streamId: number, by: number) =>
    streams.takeWindowUpdate(frame(frameTypes.windowUpdate, { streamId, marks: 0, bytes: Buffer.alloc(4) }), by);
  const answers = (): string[] => {
    output.flush();
    return sent.splice(0);
  };
  return { streams, requests, heard, headers, data, reset, widen, answers, idleWork: () => idleWork };
}

function readerOf(id: number, heard: string[]): StreamReader {
  return {
    waitsSinceMonotonicMs: undefined,
    onData: (bytes) => void heard.push(`${id} data ${bytes.length}`),
    onEnd: () => void heard.push(`${id} end`),
    onGone: () => void heard.push(`${id} gone`),
    onLate: () => undefined,
  };
}

function frame(type: number, { streamId, marks, bytes }: { streamId: number; marks: number; bytes: Buffer }): Frame {
  return { type, flags: marks, streamId, bytes, from: 0, to: bytes.length };
}

test("a request arrives in parts, and its stream leaves the table with the answer", () => {
  const { streams, requests, heard, headers, data, answers } = open();
  headers(1);
  data(1, 5);
  data(1, 2, endStream);
  expect(heard).toEqual(["1 data 5", "1 data 2", "1 end"]);
  requests[0]!.end(Buffer.alloc(1));
  expect([streams.size, answers()]).toEqual([0, ["1 headers"]]);
});

test("an early answer resets the rest of the request with NO_ERROR, and frames still in flight are no mistake", () => {
  const { requests, heard, headers, data, answers, idleWork } = open();
  headers(1);
  requests[0]!.end(Buffer.alloc(1));
  expect(answers()).toEqual(["1 headers", `1 reset ${errorCodes.noError}`]);
  data(1, 5);
  headers(1, endStream, Buffer.alloc(0));
  // But they count as idle work: the client may have provoked the reset.
  expect([answers(), heard, idleWork()]).toEqual([[], [], 2]);
});

test("a client that resets a call is not answered, and its reader is notified once", () => {
  const { requests, heard, headers, reset, answers, idleWork } = open();
  headers(1, endStream);
  reset(1);
  reset(1);
  requests[0]!.answer(Buffer.alloc(1), Buffer.alloc(1), Buffer.alloc(1));
  expect([heard, answers(), idleWork()]).toEqual([["1 end", "1 gone"], [], 2]);
});

test("calls in flight count against the stream limit even after their client has reset them", () => {
  const { streams, requests, headers, reset, answers } = open();
  for (let i = 0; i < MOST_STREAMS; i++) {
    headers(2 * i + 1, endStream);
    streams.begin();
    reset(2 * i + 1);
  }
  headers(2 * MOST_STREAMS + 1, endStream);
  expect([requests.length, answers()]).toEqual([MOST_STREAMS, [`2001 reset ${errorCodes.refusedStream}`]]);
  streams.decided();
  headers(2 * MOST_STREAMS + 3, endStream);
  expect(requests.length).toBe(MOST_STREAMS + 1);
});

test.each<[string, (at: ReturnType<typeof open>) => void]>([
  ["HEADERS of an even stream", ({ headers }) => headers(2)],
  [
    "HEADERS of a stream that has ended",
    ({ headers, requests }) => {
      headers(1, endStream);
      requests[0]!.end(Buffer.alloc(1));
      headers(1, endStream);
    },
  ],
  [
    "HEADERS of a stream that was passed over",
    ({ headers }) => {
      headers(5);
      headers(3);
    },
  ],
  ["DATA of a stream that was never opened", ({ data }) => data(1, 1)],
  ["RST_STREAM of a stream that was never opened", ({ reset }) => reset(1)],
])("%s ends the connection", (_what, act) => {
  expect(() => act(open())).toThrow();
});

test.each<[string, number, (at: ReturnType<typeof open>) => void]>([
  [
    "DATA behind the end",
    errorCodes.streamClosed,
    ({ headers, data }) => {
      headers(1, endStream);
      data(1, 1);
    },
  ],
  [
    "DATA beyond the window",
    errorCodes.flowControlError,
    ({ headers, data }) => {
      headers(1);
      for (let i = 0; i < 4; i++) data(1, 16_384);
    },
  ],
  [
    "a second head in the middle",
    errorCodes.protocolError,
    ({ headers }) => {
      headers(1);
      headers(1);
    },
  ],
  ["a request without a method", errorCodes.protocolError, ({ headers }) => headers(1, endStream, POST.subarray(1))],
])("%s resets the stream, and is charged as a reset of the client's own", (_what, code, act) => {
  const at = open();
  act(at);
  expect([at.answers(), at.streams.size, at.idleWork()]).toEqual([[`1 reset ${code}`], 0, 1]);
});

test.each<[string, number, (at: ReturnType<typeof open>) => void]>([
  ["an empty frame in the middle", 1, ({ data }) => data(1, 0)],
  ["an empty frame at the end", 0, ({ data }) => data(1, 0, endStream)],
  ["a frame with bytes", 0, ({ data }) => data(1, 1)],
  ["a window opened by a byte", 1, ({ widen }) => widen(1, 1)],
  ["a window opened by what was read", 0, ({ widen }) => widen(1, 16_384)],
  [
    "a window of a stream that has ended",
    1,
    ({ widen, headers, requests }) => {
      headers(3, endStream);
      requests[1]!.end(Buffer.alloc(1));
      widen(3, 16_384);
    },
  ],
  ["a priority", 1, ({ streams }) => streams.takePriority(frame(2, { streamId: 1, marks: 0, bytes: Buffer.alloc(5) }))],
])("%s is charged %i", (_what, charged, act) => {
  const at = open();
  at.headers(1);
  act(at);
  expect(at.idleWork()).toBe(charged);
});
