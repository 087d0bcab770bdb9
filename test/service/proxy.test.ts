/** The reverse proxy, in front of a real upstream, with raw sockets where a client library would be too polite. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningService, startTestService } from "./running-service.js";

const rules: Rule[] = [
  { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1d" },
  { id: "places", key: ["room"], algorithm: "concurrency", limit: 1, ttl: "300ms" },
];
const mapping = "attributes: { user: { header: x-user }, room: { header: x-room } }\n";

let upstream: Server;
let service: RunningService;
let proxyPort: number;
const seen: IncomingMessage[] = [];
const held: { response: import("node:http").ServerResponse; closed: boolean }[] = [];

beforeAll(async () => {
  upstream = createServer((incoming, response) => {
    seen.push(incoming);
    if (incoming.url === "/echo") {
      response.writeHead(200, { "x-length": incoming.headers["content-length"] ?? "chunked" });
      incoming.pipe(response);
    } else if (incoming.url === "/hold") {
      const one = { response, closed: false };
      held.push(one);
      response.on("close", () => {
        one.closed = true;
      });
      response.writeHead(200);
      response.write("first");
    } else if (incoming.url === "/break") {
      response.writeHead(200, { "content-length": "100" });
      response.write("half");
      setTimeout(() => response.socket!.destroy(), 20);
    } else if (incoming.url === "/headers") {
      response.writeHead(201, "Made", [
        ...["Set-Cookie", "a=1", "Set-Cookie", "b=2", "X-Custom", "kept", "RateLimit-Policy", '"upstream";q=1;w=1'],
        ...["Connection", "X-Hop", "X-Hop", "gone", "Keep-Alive", "timeout=99"],
      ]);
      response.end("headers");
    } else response.end("plain");
  });
  // It sees every field, as most servers do.
  upstream.maxHeadersCount = 0;
  upstream.on("upgrade", (incoming, socket) => {
    seen.push(incoming);
    if (incoming.url === "/declined") {
      socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
      return;
    }
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nx-ws: yes\r\n\r\nhello",
    );
    socket.on("data", (chunk: Buffer) => socket.write(`echo:${chunk}`));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  service = await startTestService({
    rules,
    files: { "attributes.yaml": mapping },
    settings: {
      attributes: "attributes.yaml",
      upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    },
  });
  proxyPort = Number(new URL(service.proxy!).port);
});
afterAll(async () => {
  for (const { response } of held) response.destroy();
  await service.close();
  upstream.closeAllConnections();
  upstream.close();
});

async function openSocket(text: string): Promise<{ socket: Socket; received: () => string; ended: Promise<unknown> }> {
  const socket = connect(proxyPort, "127.0.0.1");
  await once(socket, "connect");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  socket.on("error", () => undefined);
  const ended = once(socket, "close");
  socket.write(text);
  return { socket, received: () => received, ended };
}

describe("passing on", () => {
  test("keeps the upstream's status and headers, adds RateLimit, removes what belongs to one connection", async () => {
    const answer = await fetch(`${service.proxy}/headers`, { headers: { "x-user": "ann" } });
    expect([answer.status, answer.statusText, await answer.text()]).toEqual([201, "Made", "headers"]);
    expect(answer.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(answer.headers.get("x-custom")).toBe("kept");
    expect(answer.headers.get("ratelimit")).toMatch(/^"per-user";r=1;t=\d+$/);
    expect(answer.headers.get("ratelimit-policy")).toBe('"upstream";q=1;w=1, "per-user";q=2;w=86400');
    expect(answer.headers.get("x-hop")).toBeNull();
    expect(answer.headers.get("keep-alive")).not.toContain("99");
  });

  test("removes the client's hop-by-hop fields, names the proxy and the true client", async () => {
    const sent = [
      "GET /plain?q=1 HTTP/1.1",
      "Host: shop.example",
      "Connection: close, X-Secret-Hop, Content-Type, Host",
      "X-Secret-Hop: 1",
      "TE: trailers",
      "Proxy-Authorization: Basic eA==",
      "Content-Type: text/kept",
      "X-Forwarded-For: 203.0.113.9",
      "X-Twice: 1",
      "X-Twice: 2",
    ];
    const { ended } = await openSocket(`${sent.join("\r\n")}\r\n\r\n`);
    await ended;
    const { headers, url } = seen.at(-1)!;
    expect(url).toBe("/plain?q=1");
    expect(headers).toMatchObject({
      host: "shop.example",
      "content-type": "text/kept",
      "x-twice": "1, 2",
      via: "1.1 sluice",
    });
    expect(headers["x-forwarded-for"]).toBe("127.0.0.1");
    for (const name of ["x-secret-hop", "te", "proxy-authorization"]) expect(headers).not.toHaveProperty(name);
  });

  test("streams bodies both ways, by length and in chunks", async () => {
    const large = Buffer.alloc(3_000_000, "sluice");
    const whole = await fetch(`${service.proxy}/echo`, { method: "POST", body: large });
    expect(whole.headers.get("x-length")).toBe("3000000");
    expect(Buffer.from(await whole.arrayBuffer()).equals(large)).toBe(true);
    const chunked = await fetch(`${service.proxy}/echo`, {
      method: "POST",
      body: new Blob([large]).stream(),
      duplex: "half",
    } as RequestInit);
    expect(chunked.headers.get("x-length")).toBe("chunked");
    expect(Buffer.from(await chunked.arrayBuffer()).equals(large)).toBe(true);
  });

  test("sends what has come before the response is whole", async () => {
    const answer = await fetch(`${service.proxy}/hold`);
    const reader = answer.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("first");
    held.at(-1)!.response.end("last");
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("last");
  });

  test("an upstream that breaks off breaks the client's response too", async () => {
    const answer = await fetch(`${service.proxy}/break`);
    await expect(answer.text()).rejects.toThrow();
  });
});

describe("a field behind a thousand others", () => {
  const thousand = "a:\r\n".repeat(1_005);

  test("is judged, as it is passed on", async () => {
    const ask = async () => {
      const { received, ended } = await openSocket(
        `GET /plain HTTP/1.1\r\nConnection: close\r\n${thousand}Host: x\r\nX-User: hidden\r\n\r\n`,
      );
      await ended;
      return received().slice(9, 12);
    };
    expect([await ask(), await ask(), await ask()]).toEqual(["200", "200", "429"]);
    expect(seen.filter(({ rawHeaders }) => rawHeaders.includes("hidden")).length).toBe(2);
  });

  test("frames the body that goes with it", async () => {
    const { received, ended } = await openSocket(
      `POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${thousand}Content-Length: 5\r\n\r\nhello`,
    );
    await ended;
    expect(received()).toMatch(/^HTTP\/1.1 200 OK\r\nx-length: 5\r\n.*\r\n\r\n.*hello/s);
  });
});

test("a refusal is 429 problem+json with Retry-After, and the upstream does not hear of it", async () => {
  for (let i = 0; i < 2; i++)
    expect((await fetch(`${service.proxy}/plain`, { headers: { "x-user": "bob" } })).status).toBe(200);
  const before = seen.length;
  const answer = await fetch(`${service.proxy}/plain`, {
    method: "POST",
    body: "x".repeat(100_000),
    headers: { "x-user": "bob" },
  });
  expect(answer.status).toBe(429);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await answer.json()).toMatchObject({ status: 429, "violated-policies": ["per-user"] });
  expect(seen.length).toBe(before);
});

describe("a lease", () => {
  const enter = (room: string, path = "/plain") => fetch(`${service.proxy}${path}`, { headers: { "x-room": room } });

  test("is held for the life of the response, renewed past its term, and freed at its end", async () => {
    const first = await enter("a", "/hold");
    await sleep(500);
    expect((await enter("a")).status).toBe(429);
    held.at(-1)!.response.end();
    await first.text();
    await expect.poll(async () => (await enter("a")).status).toBe(200);
  });

  test("is freed when the client goes away, and the upstream is told", async () => {
    const { socket, received } = await openSocket("GET /hold HTTP/1.1\r\nHost: x\r\nX-Room: b\r\n\r\n");
    await expect.poll(received).toContain("first");
    expect((await enter("b")).status).toBe(429);
    const one = held.at(-1)!;
    socket.destroy();
    await expect.poll(() => one.closed).toBe(true);
    await expect.poll(async () => (await enter("b")).status).toBe(200);
  });

  test("is freed when the upstream goes away", async () => {
    const first = await enter("c", "/hold");
    held.at(-1)!.response.socket!.destroy();
    await expect(first.text()).rejects.toThrow();
    await expect.poll(async () => (await enter("c")).status).toBe(200);
  });
});

describe("upgrades", () => {
  const upgrade = (path: string, extra = "") =>
    openSocket(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n${extra}\r\n`,
    );

  test("a WebSocket is passed on, checked first, and holds its lease until it ends", async () => {
    const { socket, received } = await upgrade("/ws", "X-Room: ws\r\n");
    await expect.poll(received).toContain("hello");
    expect(received()).toMatch(/^HTTP\/1\.1 101 .*\r\n/);
    expect(received()).toContain("x-ws: yes");
    expect(received()).toMatch(/RateLimit-Policy: "places";q=1;qu="concurrent-requests"/);
    socket.write("ping");
    await expect.poll(received).toContain("echo:ping");
    await sleep(400);
    const second = await upgrade("/ws", "X-Room: ws\r\n");
    await second.ended;
    expect(second.received()).toMatch(/^HTTP\/1\.1 429 Too Many Requests\r\n/);
    expect(second.received()).toContain("violated-policies");
    socket.destroy();
    await expect
      .poll(async () => (await fetch(`${service.proxy}/plain`, { headers: { "x-room": "ws" } })).status)
      .toBe(200);
  });

  test("an upstream that declines is heard", async () => {
    const { received, ended } = await upgrade("/declined");
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 403 Forbidden/);
    expect(received()).toMatch(/no$/);
  });

  test("only WebSockets: another protocol is answered as a plain request, without a tunnel", async () => {
    const { received, ended } = await openSocket(
      "GET /plain HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    );
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(received()).toContain("plain");
    expect(seen.at(-1)!.headers).not.toHaveProperty("upgrade");
    expect(seen.at(-1)!.headers).not.toHaveProperty("http2-settings");
  });
});

describe("smuggling", () => {
  test.each([
    [
      "both lengths",
      "POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["two lengths", "POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"],
    [
      "a coding after chunked",
      "POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ],
    ["another coding", "POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
    ["a space before the colon", "POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"],
    ["a folded line", "GET /plain HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n"],
    ["a bare line feed", "GET /plain HTTP/1.1\nHost: x\n\n"],
    ["a signed length", "POST /plain HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd"],
    ["a bad chunk", "POST /plain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n"],
    ["two hosts", "GET /plain HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"],
    ["no host", "GET /plain HTTP/1.1\r\n\r\n"],
    ["a null in a header", "GET /plain HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n"],
  ])("a request with %s is refused and its connection ended", async (_what, text) => {
    const before = seen.length;
    const { received, ended } = await openSocket(`${text}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`);
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 (400|501) /);
    expect(received().match(/HTTP\/1\.1 200/g)).toBeNull();
    expect(seen.slice(before).map(({ url }) => url)).not.toContain("/smuggled");
  });

  test("an absolute target reaches the upstream as a path, and its host as the Host", async () => {
    const { ended } = await openSocket(
      "GET http://other.example/abs?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    await ended;
    const { url, headers } = seen.at(-1)!;
    expect([url, headers.host, headers["x-forwarded-host"]]).toEqual(["/abs?x=1", "other.example", "other.example"]);
  });

  test.each(["http://user@other.example/", "ftp://other.example/", "http:///x", "*"])(
    "the target %s is refused",
    async (target) => {
      const before = seen.length;
      const { received, ended } = await openSocket(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await ended;
      expect([received().slice(9, 12), seen.length]).toEqual(["400", before]);
    },
  );

  test("the upstream gets the target that was judged", async () => {
    const { ended } = await openSocket(
      "GET /a/.././/b%2d%c3%a9?q=/../x#f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    await ended;
    expect(seen.at(-1)!.url).toBe("/b-%C3%A9?q=/../x");
  });

  test("a stranger speaks neither for another client nor for another path or method, in any spelling", async () => {
    const spoken = [
      "X-Real-IP",
      "Forwarded",
      "X-Original-URL",
      "X-Rewrite-URL",
      "True-Client-IP",
      "X-Forwarded-Prefix",
      "X-HTTP-Method-Override",
    ];
    const aliases = ["X_HTTP_Method_Override", "X_Forwarded_For", "X_Real_IP", "X_User", "Content_Length"];
    const kept = ["X-Custom: 1", "under_score: 2", "X-User: carl"];
    const lines = [...[...spoken, ...aliases].map((name) => `${name}: 203.0.113.7`), ...kept];
    const { ended } = await openSocket(
      `GET / HTTP/1.1\r\nHost: x\r\nConnection: close, X-User\r\n${lines.join("\r\n")}\r\n\r\n`,
    );
    await ended;
    const { headers } = seen.at(-1)!;
    for (const name of [...spoken, ...aliases]) expect(headers).not.toHaveProperty(name.toLowerCase());
    // A header by which the request was judged cannot be taken out by naming it in Connection.
    expect(headers).toMatchObject({ "x-custom": "1", under_score: "2", "x-user": "carl" });
  });

  test("a header that an attribute is read from is refused if it comes twice", async () => {
    const before = seen.length;
    const { received, ended } = await openSocket("GET / HTTP/1.1\r\nHost: x\r\nX-User: bob\r\nX-User: a\r\n\r\n");
    await ended;
    expect(received()).toMatch(/^HTTP\/1\.1 400 [\s\S]*x-user: expected one such header, got several/);
    expect(seen.length).toBe(before);
  });
});

test("an upstream that cannot be reached is 502, and each place it held is free again", async () => {
  await using lonely = await startTestService({
    rules,
    files: { "attributes.yaml": mapping },
    settings: { attributes: "attributes.yaml", upstream: "http://127.0.0.1:9" },
  });
  for (let i = 0; i < 3; i++) {
    const answer = await fetch(`${lonely.proxy}/x`, { headers: { "x-room": "r" } });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([502, "upstream-unreachable"]);
    await sleep(20);
  }
});

test("a reader that is slow is waited for without holding the response in memory", async () => {
  const size = 30_000_000;
  const source = createServer((_request, response) => {
    const chunk = Buffer.alloc(64 * 1024, 1);
    let left = size;
    const more = (): void => {
      while (left > 0) {
        left -= chunk.length;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
  await using proxying = await startTestService({
    rules: [],
    settings: { upstream: `http://127.0.0.1:${(source.address() as AddressInfo).port}` },
  });
  const before = process.memoryUsage().rss;
  const readers = await Promise.all(
    Array.from(
      { length: 20 },
      () => new Promise<IncomingMessage>((resolve) => request(proxying.proxy!, resolve).end()),
    ),
  );
  await sleep(500);
  const grown = process.memoryUsage().rss - before;
  console.log(`20 slow readers of 30 MB: memory grew by ${(grown / 1e6).toFixed(0)} MB`);
  expect(grown).toBeLessThan(200_000_000);
  for (const reader of readers) reader.destroy();
  source.closeAllConnections();
  source.close();
});
