/**
 * When responses are written: at once if no call is in flight, otherwise batched per event-loop turn. And what may end a connection, and
 * what may not.
 */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { Connection } from "./connection.js";
import { errorCodes, flags, frameTypes, PREFACE } from "./protocol.js";
import type { Stream } from "./stream.js";
import { OpenStreams } from "./streams.js";

const POST = Buffer.from("838684", "hex");
const nothing = Buffer.alloc(0);
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

function frame(type: number, streamId: number, payload = nothing): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = type === frameTypes.headers ? flags.endHeaders | flags.endStream : 0;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

const call = (streamId: number): Buffer => frame(frameTypes.headers, streamId, POST);

/** A connection whose calls are answered when the test decides, or synchronously during the read. */
async function open({ all = new OpenStreams(), answersAtOnce = false, throws = undefined as Error | undefined } = {}) {
  let writes = 0;
  const failures: unknown[] = [];
  const written: Buffer[] = [];
  const calls: Stream[] = [];
  const answer = (stream: Stream): void => stream.answer(Buffer.from("88", "hex"), nothing, Buffer.from("88", "hex"));
  const socket = Object.assign(new EventEmitter(), {
    writable: true,
    writableLength: 0,
    write: (bytes: Buffer) => {
      writes++;
      written.push(bytes);
      return true;
    },
    end: () => void socket.emit("close"),
    resume: () => undefined,
    destroy: () => undefined,
  });
  void new Connection(socket as unknown as Socket, {
    onRequest(stream) {
      if (throws !== undefined) throw throws;
      if (answersAtOnce) answer(stream);
      else calls.push(stream);
    },
    onEnd: () => undefined,
    onFailure: (error) => failures.push(error),
    open: all,
  });
  const read = (...frames: Buffer[]): void => void socket.emit("data", Buffer.concat(frames));
  read(PREFACE, frame(frameTypes.settings, 0));
  await turn();
  return { read, calls, answer, writes: () => writes, failures, written };
}

test("the answer to a lone call is written at once, not at the end of the turn", async () => {
  const { read, calls, answer, writes } = await open();
  read(call(1));
  await turn();
  const before = writes();
  answer(calls[0]!);
  expect(writes()).toBe(before + 1);
  await turn();
  expect(writes()).toBe(before + 1);
});

test("answers of one turn share one write, triggered by the last of them", async () => {
  const { read, calls, answer, writes } = await open();
  read(call(1), call(3), call(5));
  const before = writes();
  for (const stream of calls.slice(0, 2)) answer(stream);
  expect(writes()).toBe(before);
  answer(calls[2]!);
  expect(writes()).toBe(before + 1);
  await turn();
  expect(writes()).toBe(before + 1);
});

test("while another connection has a call in flight, an answer is written at the end of the turn", async () => {
  const all = new OpenStreams();
  const [first, second] = [await open({ all }), await open({ all })];
  first.read(call(1));
  second.read(call(1));
  const before = first.writes();
  first.answer(first.calls[0]!);
  expect([first.writes(), all.count]).toEqual([before, 1]);
  await turn();
  expect(first.writes()).toBe(before + 1);
});

test("calls answered during a read share one write", async () => {
  const { read, writes } = await open({ answersAtOnce: true });
  const before = writes();
  read(...Array.from({ length: 20 }, (_, i) => call(2 * i + 1)));
  expect(writes()).toBe(before);
  await turn();
  expect(writes()).toBe(before + 1);
});

test("an error thrown by a handler is reported, and ends only its own connection", async () => {
  const all = new OpenStreams();
  const error = new Error("a defect");
  const [broken, other] = [await open({ all, throws: error }), await open({ all, answersAtOnce: true })];
  broken.read(call(1));
  expect(broken.failures).toEqual([error]);
  const goaway = broken.written.at(-1)!;
  expect([goaway[3], goaway.readUInt32BE(13)]).toEqual([frameTypes.goaway, errorCodes.internalError]);
  expect(all.count).toBe(0);
  const before = other.writes();
  other.read(call(1));
  await turn();
  expect(other.writes()).toBe(before + 1);
});
