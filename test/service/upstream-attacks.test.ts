/**
 * The proxy in front of an upstream that breaks the protocol: every request is answered or cut, every place is free afterwards, every
 * admitted request is charged once, and the process lives.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Rule } from "sluice";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rawRequest, requestText } from "./raw-request.js";
import { type Json, postJson, type RunningService, startTestService } from "./running-service.js";

const LIMIT = 1_000;
const rules: Rule[] = [
  { id: "places", key: [], algorithm: "concurrency", limit: 1, ttl: "1h" },
  { id: "requests", key: [], algorithm: "fixed-window", limit: LIMIT, window: "365d" },
];
/** The patience of this test, which nothing here may use up. */
const SILENCE_MS = 60_000;

let upstream: Server;
let service: RunningService;
let proxyPort: number;
/** Called with each request that reaches the upstream. */
let act: (socket: Socket) => void;
let seen: string[] = [];

beforeAll(async () => {
  upstream = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      seen.push(chunk.toString("latin1"));
      act(socket);
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const { port } = upstream.address() as AddressInfo;
  service = await startTestService({ rules, settings: { upstream: `http://127.0.0.1:${port}` } });
  proxyPort = Number(new URL(service.proxy!).port);
});
afterAll(async () => {
  await service.close();
  upstream.close();
});

async function left(): Promise<number[]> {
  const { body } = await postJson(`${service.http}/v1/peek`, { attributes: {}, cost: 0 });
  return (body.checks as Json[]).map(({ remaining }) => remaining as number);
}

/** A place is freed when the response's end is known, which may be a turn later than the client's. */
async function untilFree(): Promise<void> {
  while ((await left())[0] !== 1) await new Promise(setImmediate);
}

const whole = "Content-Length: 2\r\n\r\nok";
const webSocket = ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
const plain = requestText({ target: "/x" });
const upgrade = requestText({ target: "/x", headers: webSocket }).replace("Connection: close", "Connection: Upgrade");

const answers: readonly (readonly [what: string, request: string, answer: string, status: number])[] = [
  ["a control character in the reason", plain, `HTTP/1.1 200 O\x01K\r\n${whole}`, 200],
  ["a reason that is no Latin-1", plain, `HTTP/1.1 200 \u00d6k\r\n${whole}`, 200],
  ["status 0", plain, `HTTP/1.1 000 X\r\n${whole}`, 502],
  ["status 99", plain, `HTTP/1.1 099 X\r\n${whole}`, 502],
  ["101 that nobody asked for", plain, "HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello", 502],
  ["101 without an upgrade", plain, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502],
  ["nothing behind an interim answer", plain, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 502],
  ["half of its header", plain, "HTTP/1.1 200 OK\r\nContent-Le", 502],
  ["no HTTP", plain, "hello", 502],
  ["two framings", plain, `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n${whole}`, 502],
  ["two lengths", plain, `HTTP/1.1 200 OK\r\nContent-Length: 3\r\n${whole}`, 502],
  ["a second answer behind the first", plain, `HTTP/1.1 200 OK\r\n${whole}HTTP/1.1 200 OK\r\n${whole}`, 200],
  ["half of its body", plain, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", 200],
  ["a body at 204", plain, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", 204],
  ["a WebSocket declined with half a body", upgrade, "HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nhalf", 403],
  ["a WebSocket with 101 and no upgrade", upgrade, "HTTP/1.1 101 Switching Protocols\r\n\r\n", 502],
  ["a WebSocket with nothing behind an interim answer", upgrade, "HTTP/1.1 103 Early Hints\r\n\r\n", 502],
  [
    "a control character in the reason of an upgrade",
    upgrade,
    "HTTP/1.1 101 S\x01\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    101,
  ],
];

test.each(answers)(
  "an upstream that answers with %s: the client hears of it, and nothing stays held",
  async (_, request, answer, status) => {
    const [, before] = await left();
    act = (socket) => void socket.end(Buffer.from(answer, "latin1"));
    const heard = await rawRequest(proxyPort, request, SILENCE_MS);
    expect(heard.status).toBe(status);
    expect(heard.text).not.toContain("\x01");
    expect(heard.timedOut).toBe(false);
    await untilFree();
    expect(await left()).toEqual([1, before! - 1]);
  },
);

test.each(["before it answers", "within its header", "within its body", "within a declined upgrade"])(
  "an upstream that resets the connection %s: nothing stays held",
  async (when) => {
    const [, before] = await left();
    act = (socket) => {
      if (when !== "before it answers") socket.write("HTTP/1.1 400 No\r\nContent-Le");
      if (when.endsWith("body") || when.endsWith("upgrade")) socket.write("ngth: 100\r\n\r\nhalf");
      setImmediate(() => setImmediate(() => socket.resetAndDestroy()));
    };
    await rawRequest(proxyPort, when.endsWith("upgrade") ? upgrade : plain, SILENCE_MS);
    await untilFree();
    expect(await left()).toEqual([1, before! - 1]);
  },
);

test.each([
  ["GET", 2],
  ["POST", 1],
])("a connection that breaks when it is used again: %s reaches the upstream %i times", async (method, times) => {
  const keep = (socket: Socket): void => void socket.write(`HTTP/1.1 200 OK\r\n${whole}`);
  act = keep;
  expect((await rawRequest(proxyPort, requestText({ target: "/first" }), SILENCE_MS)).status).toBe(200);
  seen = [];
  // The request was seen, and perhaps done.
  act = (socket) => {
    act = keep;
    socket.resetAndDestroy();
  };
  const target = "/again";
  const { status } = await rawRequest(
    proxyPort,
    requestText({ method, target, headers: ["Content-Length: 0"] }),
    SILENCE_MS,
  );
  expect([seen.length, status]).toEqual([times, times === 2 ? 200 : 502]);
});

test("an expectation that nobody knows is passed over, and not passed on", async () => {
  seen = [];
  act = (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${whole}`);
  const { status } = await rawRequest(
    proxyPort,
    requestText({ target: "/x", headers: ["Expect: a-miracle"] }),
    SILENCE_MS,
  );
  expect([status, seen.length, seen[0]!.includes("miracle")]).toEqual([200, 1, false]);
});
