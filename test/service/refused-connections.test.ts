/** What never becomes a request is answered too, and whoever is still sending can read the answer: raw sockets on both ports. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningService, startTestService } from "./running-service.js";

let service: RunningService;
let upstream: Server;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    request.resume();
    response.end("from the upstream");
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  service = await startTestService({
    rules: [
      { id: "one", key: ["method"], match: { method: "PUT" }, algorithm: "fixed-window", limit: 1, window: "365d" },
    ],
    settings: { upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` },
  });
});
afterAll(async () => {
  await service.close();
  upstream.close();
});

/** Sends everything before it reads anything, as many clients do; then what came, until the other side ends. Rejects if the connection was reset. */
async function send(url: string, first: string, more?: { piece: string; pieces: number }): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
  const broken = once(socket, "error").then(([error]) => Promise.reject(error as Error));
  broken.catch(() => undefined);
  socket.write(first);
  for (let i = 0; i < (more?.pieces ?? 0); i++) {
    if (!socket.write(more!.piece)) await Promise.race([once(socket, "drain"), broken]);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  let came = "";
  socket.on("data", (chunk) => {
    came += chunk.toString("latin1");
  });
  await Promise.race([once(socket, "end"), broken]);
  socket.destroy();
  return came;
}

const ports = (): [string, string][] => [
  ["the HTTP API", service.http],
  ["the proxy", service.proxy!],
];

describe.each(["the HTTP API", "the proxy"])("%s", (name) => {
  const url = (): string => ports().find(([known]) => known === name)![1];

  test.each([
    ["a method that HTTP does not know", "FOO / HTTP/1.1\r\nhost: x\r\n\r\n", 400, "invalid-request"],
    ["bytes that are no HTTP", "\x16\x03\x01 hello\r\n\r\n", 400, "invalid-request"],
    ["20 KiB of headers", `GET / HTTP/1.1\r\nhost: x\r\nx: ${"y".repeat(20_000)}\r\n\r\n`, 431, "headers-too-large"],
  ])("answers %s with a problem", async (_what, bytes, status, code) => {
    const answer = await send(url(), bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`));
    expect(answer).toContain("application/problem+json");
    expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4))).toMatchObject({ status, code });
  });

  test("lets a client that sends megabytes of headers read why it was refused", async () => {
    const piece = `x: ${"y".repeat(60_000)}\r\n`;
    const answer = await send(url(), "GET / HTTP/1.1\r\nhost: x\r\n", { piece, pieces: 20 });
    expect(answer).toMatch(/^HTTP\/1\.1 431 /);
  });

  test("answers once, and looks at nothing that follows what it could not read", async () => {
    const answer = await send(url(), "FOO / HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toHaveLength(1);
  });
});

test("a client in the middle of a body that is too large reads the 413", async () => {
  const head =
    "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 5000000\r\n\r\n";
  const answer = await send(service.http, head, { piece: " ".repeat(50_000), pieces: 20 });
  expect(answer).toMatch(/^HTTP\/1\.1 413 /);
  expect(answer).toContain("expected at most 64 KiB");
});

test("a client in the middle of an upload that the proxy refuses reads the 429", async () => {
  const head = "PUT /file HTTP/1.1\r\nhost: x\r\ncontent-length: 5000000\r\n\r\n";
  const whole = "PUT /file HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n.";
  expect(await send(service.proxy!, whole)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await send(service.proxy!, head, { piece: " ".repeat(50_000), pieces: 20 })).toMatch(/^HTTP\/1\.1 429 /);
});

test("a peer that never stops sending is cut off", async () => {
  const socket = connect({ port: Number(new URL(service.http).port), host: "127.0.0.1" });
  socket.on("error", () => undefined);
  socket.resume();
  socket.write("FOO / HTTP/1.1\r\n\r\n");
  const timer = setInterval(() => socket.write("more"), 20);
  // Far more than the second that it lingers; without the cut it would go on for ever.
  await Promise.race([
    once(socket, "close"),
    new Promise((_, reject) => setTimeout(() => reject(new Error("still open after 20 s")), 20_000).unref()),
  ]);
  clearInterval(timer);
});
