import { expect, test } from "vitest";
import type { CallOptions } from "./call.js";
import { CallBody } from "./call-body.js";
import { MessageBudget } from "./message-budget.js";
import { framed } from "./message-frame.js";

const MOST_BYTES = 2 ** 20;
const budget = () => new MessageBudget({ bytesPerConnection: 100_000, bytesInAll: 1_000_000, calls: 10 });

/** A call on a connection that has already reserved `reserved` bytes of the budget. */
function open({ requestStream = true, reserved = 0 } = {}) {
  const shared = budget();
  const peer = shared.join();
  let allowed = 0;
  const nothing = { peer, pause: () => undefined, resume: () => undefined };
  const giveBack = shared.reserve({ ...nothing, bytes: reserved });
  const stream = {
    owedBytes: 0,
    allowMore() {
      allowed += stream.owedBytes;
      stream.owedBytes = 0;
    },
  };
  const caller = { budget: shared, peer, mostMessageBytes: MOST_BYTES };
  const options = { stream, caller, method: { requestStream }, head: { get: () => undefined } };
  const body = new CallBody(options as unknown as CallOptions);
  const read = (bytes: Buffer): void => {
    stream.owedBytes += bytes.length;
    body.read(bytes);
    body.allowMore();
  };
  return { body, read, peer, giveBack, allowed: () => allowed };
}

const texts = (body: CallBody, count: number) => Array.from({ length: count }, () => body.next()?.bytes.toString());

test("messages wait until the handler asks for them, and the client gets window again once all are taken", () => {
  const { body, read, allowed } = open();
  const long = "c".repeat(20_000);
  read(Buffer.concat(["a", "b", long].map((text) => framed(Buffer.from(text)))));
  expect([body.isEmpty, allowed()]).toEqual([false, 0]);
  expect(texts(body, 4)).toEqual(["a", "b", long, undefined]);
  body.allowMore();
  expect([body.isEmpty, allowed()]).toEqual([true, 20_017]);
});

test("an incomplete message holds a reservation until it is taken, even if it starts behind another message", () => {
  const { body, read, peer, giveBack } = open();
  giveBack();
  const [first, second] = [framed(Buffer.alloc(1_000)), framed(Buffer.alloc(50_000))];
  read(first.subarray(0, 500));
  expect(peer.reserved).toBe(505);
  read(Buffer.concat([first.subarray(500), second.subarray(0, 10_005)]));
  expect(peer.reserved).toBe(505);
  expect([body.next()?.bytes.length, peer.reserved]).toEqual([1_000, 0]);
  expect([body.next(), peer.reserved]).toEqual([undefined, 40_000]);
  read(second.subarray(10_005));
  expect([body.next()?.bytes.length, peer.reserved]).toEqual([50_000, 0]);
});

test("a message without room in the budget gets no more window until there is room, and the next message is unaffected", () => {
  const { body, read, giveBack, allowed } = open({ reserved: 100_000 });
  read(framed(Buffer.alloc(40_000)).subarray(0, 30_000));
  expect(allowed()).toBe(0);
  giveBack();
  expect(allowed()).toBe(30_000);
  const again = open({ reserved: 100_000 });
  again.read(framed(Buffer.alloc(40_000)).subarray(0, 30_000));
  // The window that the client already had was enough to complete the message.
  again.read(Buffer.alloc(10_005));
  expect([again.body.next()?.bytes.length, body.isEmpty]).toEqual([40_000, false]);
  again.body.allowMore();
  expect(again.allowed()).toBe(40_005);
});

test("a call with a single request message refuses the first byte of a second one", () => {
  const { body, read } = open({ requestStream: false });
  read(framed(Buffer.from("a")));
  expect(() => read(Buffer.of(0))).toThrow("more than one message");
  expect(body.next()?.bytes.toString()).toBe("a");
});
