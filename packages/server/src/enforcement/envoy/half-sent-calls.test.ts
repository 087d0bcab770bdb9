import { EventEmitter } from "node:events";
import type { Http2Server } from "node:http2";
import { expect, test } from "vitest";
import { HalfSentCalls } from "./half-sent-calls.js";

/** The parts of a grpc-js server stream that control its flow. */
class Stream extends EventEmitter {
  readonly session: EventEmitter;
  readonly destroyed = false;
  isPaused = false;

  constructor(session: EventEmitter) {
    super();
    this.session = session;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

function begun(length: number, sent: number): Buffer {
  const bytes = Buffer.alloc(5 + sent);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

test("a message that starts in the chunk that ends another waits for room like any other, then continues", () => {
  const server = new EventEmitter();
  new HalfSentCalls({ bytesPerConnection: 1_000, bytesInAll: 10_000, calls: 100 }).watch(server as Http2Server);
  const session = new EventEmitter();
  const streams = [0, 1, 2].map(() => new Stream(session));
  const paused = () => streams.map(({ isPaused }) => isPaused);
  for (const stream of streams) {
    server.emit("stream", stream);
    stream.emit("data", begun(20, 10));
    stream.emit("data", Buffer.concat([Buffer.alloc(10), begun(900, 100)]));
  }
  expect(paused()).toEqual([false, true, true]);
  streams[0]!.emit("data", Buffer.alloc(800));
  expect(paused()).toEqual([false, false, true]);
  streams[1]!.emit("close");
  expect(paused()).toEqual([false, false, false]);
});
