import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { watchBody, watchHead } from "./watch-response.js";

type Handler = (response: ServerResponse) => void;

/** What was seen of a response, by watching it and by receiving it. */
async function watched(handle: Handler): Promise<{ bytes: number; received: string; cost: string | undefined }> {
  let bytes = 0;
  let headerOf: (name: string) => string | undefined = () => undefined;
  const server = createServer((_request, response) => {
    headerOf = watchHead(response);
    watchBody(response, (chunk) => {
      bytes += chunk.byteLength;
    });
    handle(response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const asked = request({ port: (server.address() as AddressInfo).port }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  let received = "";
  for await (const chunk of answer) received += chunk;
  server.close();
  return { bytes, received, cost: headerOf("x-cost") };
}

test.each<[string, Handler]>([
  [
    "write and end",
    (response) => {
      response.write("aé");
      response.end(Buffer.from("bc"));
    },
  ],
  ["end alone, with a callback", (response) => void response.end("aébc", () => undefined)],
  [
    "another encoding",
    (response) => {
      response.write("61c3a9", "hex");
      response.end("YmM=", "base64");
    },
  ],
])("the bytes of %s are seen once", async (_name, handle) => {
  expect(await watched(handle)).toEqual({ bytes: 5, received: "aébc", cost: undefined });
});

test.each<[string, Handler]>([
  ["setHeader", (response) => void response.setHeader("X-Cost", 7).end()],
  ["writeHead with an object", (response) => void response.writeHead(200, { "X-Cost": "7" }).end()],
  ["writeHead with a reason", (response) => void response.writeHead(200, "Fine", { "x-cost": 7 }).end()],
  ["writeHead with a list", (response) => void response.writeHead(200, ["X-Cost", "7", "b", "c"]).end()],
  [
    "both, of which the later counts",
    (response) => {
      response.setHeader("x-cost", "1");
      response.writeHead(200, { "x-cost": "7" }).end();
    },
  ],
])("a field that is set by %s is read", async (_name, handle) => {
  expect((await watched(handle)).cost).toBe("7");
});

test("over HTTP/2, where end calls write, bytes are counted once", async () => {
  let bytes = 0;
  const server = createHttp2Server((_request, response) => {
    watchBody(response as unknown as ServerResponse, (chunk) => {
      bytes += chunk.byteLength;
    });
    response.write("abc");
    response.end("de");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  let received = "";
  for await (const chunk of session.request({ ":path": "/" }).setEncoding("utf8")) received += chunk;
  expect([received, bytes]).toEqual(["abcde", 5]);
  session.close();
  server.close();
});
