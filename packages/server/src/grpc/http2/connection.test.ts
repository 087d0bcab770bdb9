/** When answers leave: at once where no call is under way, else with the others of their turn. */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { Connection } from "./connection.js";
import { flags, frameTypes, PREFACE } from "./protocol.js";
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

/** A connection whose calls are answered when the test says so, or during the read. */
async function open({ all = new OpenStreams(), answersAtOnce = false } = {}) {
  let writes = 0;
  const calls: Stream[] = [];
  const answer = (stream: Stream): void => stream.answer(Buffer.from("88", "hex"), nothing, Buffer.from("88", "hex"));
  const socket = Object.assign(new EventEmitter(), {
    writable: true,
    writableLength: 0,
    write: () => {
      writes++;
      return true;
    },
  });
  void new Connection(socket as unknown as Socket, {
    onRequest(stream) {
      if (answersAtOnce) answer(stream);
      else calls.push(stream);
    },
    onEnd: () => undefined,
    open: all,
  });
  const read = (...frames: Buffer[]): void => void socket.emit("data", Buffer.concat(frames));
  read(PREFACE, frame(frameTypes.settings, 0));
  await turn();
  return { read, calls, answer, writes: () => writes };
}

test("the answer to a lone call leaves at once, not at the end of the turn", async () => {
  const { read, calls, answer, writes } = await open();
  read(call(1));
  await turn();
  const before = writes();
  answer(calls[0]!);
  expect(writes()).toBe(before + 1);
  await turn();
  expect(writes()).toBe(before + 1);
});

test("answers of one turn leave in one write, the last of them takes the others along", async () => {
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

test("while another connection has a call under way, an answer leaves at the end of the turn", async () => {
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

test("calls that are answered while they are read leave in one write", async () => {
  const { read, writes } = await open({ answersAtOnce: true });
  const before = writes();
  read(...Array.from({ length: 20 }, (_, i) => call(2 * i + 1)));
  expect(writes()).toBe(before);
  await turn();
  expect(writes()).toBe(before + 1);
});
