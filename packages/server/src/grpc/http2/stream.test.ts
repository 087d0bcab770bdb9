import { expect, test } from "vitest";
import { INITIAL_WINDOW } from "./protocol.js";
import type { Sender } from "./sender.js";
import { Stream } from "./stream.js";

const sender = { initialWindow: INITIAL_WINDOW } as Sender;

test("a body may be shorter than declared until it ends, but never longer", () => {
  const stream = new Stream(1, sender);
  expect(stream.isAsDeclared).toBe(true);
  stream.declaredBytes = 3;
  expect(stream.isAsDeclared).toBe(true);
  stream.isRemoteClosed = true;
  expect(stream.isAsDeclared).toBe(false);
  stream.receivedBytes = 3;
  expect(stream.isAsDeclared).toBe(true);
  stream.isRemoteClosed = false;
  stream.receivedBytes = 4;
  expect(stream.isAsDeclared).toBe(false);
});

test("a stream that has ended sends nothing", () => {
  const stream = new Stream(1, sender);
  stream.isLocalClosed = true;
  stream.isRemoteClosed = true;
  stream.headers(Buffer.alloc(1));
  stream.end(Buffer.alloc(1));
  stream.reset(0);
  stream.allowMore();
  expect([stream.isGone, stream.data(Buffer.alloc(1))]).toEqual([true, true]);
});
