import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { ClientLeft } from "./client-left.js";

test("a connection that closes while the request waits aborts the wait", () => {
  const socket = new EventEmitter();
  const left = new ClientLeft({ socket });
  const signal = left.signal();
  expect(signal.aborted).toBe(false);
  socket.emit("close");
  expect(signal.aborted).toBe(true);
  expect(left.isSo).toBe(true);
});

test("a connection that closed before the wait aborts it at once", () => {
  expect(new ClientLeft({ socket: Object.assign(new EventEmitter(), { destroyed: true }) }).signal().aborted).toBe(
    true,
  );
});

test("with HTTP/2 the stream counts, and no listener is left on the connection", () => {
  const [socket, stream] = [new EventEmitter(), new EventEmitter()];
  const left = new ClientLeft({ socket, stream });
  left.signal();
  expect([socket.listenerCount("close"), stream.listenerCount("close")]).toEqual([0, 1]);
  left.forget();
  expect(stream.listenerCount("close")).toBe(0);
});

test("otherwise the request's own signal counts", () => {
  const controller = new AbortController();
  const left = new ClientLeft({ req: { raw: { signal: controller.signal } } });
  const signal = left.signal();
  controller.abort();
  expect(signal.aborted).toBe(true);
});
