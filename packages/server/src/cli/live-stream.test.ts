import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { readLiveViews } from "./live-stream.js";

/** A service whose stream is controlled by the test. */
async function streaming(say: (response: ServerResponse) => void) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    say(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
}

async function read(server: string, seen: unknown[]): Promise<void> {
  const options = { server, token: "a-token-for-this-test", json: false };
  for await (const view of readLiveViews(options, new AbortController().signal, 2_000)) seen.push(view);
}

test("a stream that stays open without new figures is given up, even if it sends comments", async () => {
  let comments: NodeJS.Timeout | undefined;
  await using service = await streaming((response) => {
    response.write('event: live\ndata: {"atMs":1}\n\n');
    comments = setInterval(() => response.write(": the history does not answer\n\n"), 50);
  });
  const seen: unknown[] = [];
  await expect(read(service.url, seen)).rejects.toThrow("no figures came for 2 s");
  clearInterval(comments);
  expect(seen).toEqual([{ atMs: 1 }]);
});

test("a stream ended by the service ends", async () => {
  await using service = await streaming((response) => response.end('event: live\ndata: {"atMs":2}\n\n'));
  const seen: unknown[] = [];
  await read(service.url, seen);
  expect(seen).toEqual([{ atMs: 2 }]);
});
