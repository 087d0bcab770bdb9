/**
 * A hostile client in front of each real gateway of examples/, and of the proxy: its limit is used up, and nothing that it can write may
 * reach the application. Then Sluice goes away and comes back.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import type { ServerProcess } from "../harness/server-process.js";
import { examples, gateways, startGateway } from "./gateway.js";
import { type RawAnswer, rawRequest, requestText } from "./raw-request.js";
import { type RunningService, startTestService } from "./running-service.js";

const rules: Rule[] = [
  { id: "probe", match: { path: "/probe" }, key: [], algorithm: "fixed-window", limit: 10_000, window: "1d" },
  // Its second turn is an hour away: whoever waits for it waits longer than any gateway.
  {
    id: "paced",
    match: { path: "/paced" },
    key: [],
    algorithm: "gcra",
    limit: 1,
    window: "1h",
    burst: 1,
    maxWait: "1h",
  },
  ...Array.from(
    { length: 400 },
    (_, i): Rule => ({
      id: `many-${i}-${"x".repeat(50)}`,
      match: { path: "/many" },
      key: [],
      algorithm: "fixed-window",
      limit: 1,
      window: "1d",
    }),
  ),
  { id: "once", match: { path: "/once" }, key: [], algorithm: "fixed-window", limit: 1, window: "1d" },
  { id: "by-address", match: { path: "/v1/**" }, key: ["ip"], algorithm: "fixed-window", limit: 1, window: "1d" },
];
const attributes = readFileSync(join(examples, "attributes", "attributes.yaml"), "utf8");

/** The paths of all requests that reached the application. */
const seen: string[] = [];
let app: Server;
let appPort: number;

beforeAll(async () => {
  // As lenient as it can be: what a stricter application would refuse must not get there either.
  app = createServer({ insecureHTTPParser: true, maxHeaderSize: 1_000_000 }, (request, response) => {
    seen.push(request.url!);
    request.resume();
    response.end("from the app");
  });
  app.on("upgrade", (request, socket) => {
    seen.push(request.url!);
    socket.destroy();
  });
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  appPort = (app.address() as AddressInfo).port;
});
afterAll(() => {
  app.closeAllConnections();
  app.close();
});

const TARGET = "/v1/things";
const sizes = [100, 1_000, 4_000, 7_500, 8_100, 12_000, 15_900, 16_400, 20_000, 33_000, 70_000];
const names = ["x-a", "x-user", "x-tenant", "cookie", "authorization", "x-forwarded-uri", "x-forwarded-for"];
const strangeBytes = ["\x01", "\x00", "\x0b", "\x1f", "\x7f", "\x80", "\xff", "\t", "\xc3\xa9", "a\rb", "a\nb", "é"];

/** Header lines beside the request for TARGET. */
const hostileHeaders: string[][] = [
  ...sizes.map((size) => [`X-A: ${"a".repeat(size)}`]),
  ...[2, 3, 4, 8].map((count) => Array.from({ length: count }, (_, i) => `X-A${i}: ${"a".repeat(7_500)}`)),
  ...names.map((name) => [`${name}: ${"a".repeat(7_500)}`, `x-b: ${"b".repeat(7_500)}`, `x-c: ${"c".repeat(7_500)}`]),
  ["Cookie: ", "X-User: ", "X-Tenant: "].map((name) => name + "a".repeat(7_000)),
  ...names.flatMap((name) => strangeBytes.map((byte) => [`${name}: a${byte}b`])),
  ...[50, 200, 2_000].map((count) => Array.from({ length: count }, (_, i) => `X-${i}: a`)),
  ...names.map((name) => [`${name}: one`, `${name}: two`]),
  ["X-Forwarded-Uri: /free", "X-Forwarded-Method: POST", "X-Forwarded-Host: other", "X-Forwarded-For: 203.0.113.7"],
  ["X_Forwarded_For: 203.0.113.7", "X-Real-IP: 203.0.113.7", "Forwarded: for=203.0.113.7", "X-Original-URL: /free"],
  ["X-Rewrite-URL: /free", "X-Original-URI: /free", "X-HTTP-Method-Override: PUT", "True-Client-IP: 203.0.113.7"],
  ["Connection: X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method", "X-Forwarded-For: 203.0.113.7"],
  ["Connection: close, X-Forwarded-Uri", "Connection: keep-alive"],
  ["Host: other.example"],
  ["Expect: 100-continue"],
  ["Expect: nonsense"],
  [
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
  ],
  ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"],
  [": empty", "no colon", "X Y: space", "X\x01Y: name", "X-É: name"],
  ["X-User : space before the colon"],
  [" folded: line"],
  ['RateLimit: "mine";r=9', "Sluice-Allowed: yes", "Authorization: Bearer x", "If-None-Match: *", "Range: bytes=0-1"],
  ["TE: trailers", "Trailer: X-User"],
  ["Accept-Encoding: gzip;q=1, br, *;q=0", "Accept: */*;q=\x02"],
];

/** Whole requests: bodies, framings, versions. */
const head = `Host: shop.example\r\nConnection: close\r\n`;
const smuggled = `GET ${TARGET} HTTP/1.1\r\nHost: shop.example\r\n\r\n`;
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const hostileRequests: string[] = [
  `GET ${TARGET}\r\n\r\n`,
  `GET ${TARGET} HTTP/0.9\r\n\r\n`,
  `GET ${TARGET} HTTP/1.0\r\n\r\n`,
  `GET ${TARGET} HTTP/1.0\r\nHost: \r\n\r\n`,
  `GET ${TARGET} HTTP/1.1\r\n\r\n`,
  `GET ${TARGET} HTTP/1.2\r\n${head}\r\n`,
  `GET ${TARGET} HTTP/2.0\r\n${head}\r\n`,
  `get ${TARGET} HTTP/1.1\r\n${head}\r\n`,
  `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
  `GET  ${TARGET} HTTP/1.1\r\n${head}\r\n`,
  `GET\t${TARGET}\tHTTP/1.1\r\n${head}\r\n`,
  `\r\n\r\nGET ${TARGET} HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET} HTTP/1.1\n${head.replaceAll("\r\n", "\n")}\n`,
  `GET ${TARGET}\x00 HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET}\xff HTTP/1.1\r\n${head}\r\n`,
  `CONNECT shop.example:80 HTTP/1.1\r\n${head}\r\n${smuggled}`,
  `TRACE ${TARGET} HTTP/1.1\r\n${head}\r\n`,
  `${"A".repeat(3_000)} ${TARGET} HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET}?${"q".repeat(7_900)} HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET}?${"q".repeat(15_000)} HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET}?${"q".repeat(60_000)} HTTP/1.1\r\n${head}\r\n`,
  `GET ${TARGET}${"/a".repeat(3_500)} HTTP/1.1\r\n${head}\r\n`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Content-Length: 5\r\n\r\nhello`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Content-Length: 100000\r\n\r\n${"b".repeat(100_000)}`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Content-Length: 50\r\n\r\nhello`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n${chunk("hello")}0\r\n\r\n`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\n5;ext=\x01\r\nhello\r\n0\r\n\r\n`,
  `POST ${TARGET} HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello`,
  `GET ${TARGET} HTTP/1.1\r\n${head}Transfer-Encoding: identity\r\n\r\n`,
  // Smuggling: a request that is free, with the limited one where one of two servers might look for it.
  ...[
    `Content-Length: ${smuggled.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n${chunk(smuggled)}0\r\n\r\n`,
    `Transfer-Encoding: xchunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Transfer-Encoding : chunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Transfer-Encoding:\x0bchunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `X: y\nTransfer-Encoding: chunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n${smuggled}`,
    `Transfer_Encoding: chunked\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: ${smuggled.length}, 0\r\n\r\n${smuggled}`,
    `Content-Length: +${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: 0x${smuggled.length.toString(16)}\r\n\r\n${smuggled}`,
    `Content_Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    `Content-Length: ${smuggled.length}\r\nExpect: 100-continue\r\n\r\n${smuggled}`,
  ].flatMap((rest) =>
    ["GET", "POST"].flatMap((method) =>
      ["close", "keep-alive"].map(
        (connection) => `${method} /free HTTP/1.1\r\nHost: shop.example\r\nConnection: ${connection}\r\n${rest}`,
      ),
    ),
  ),
  // Pipelined behind a free one: judged like any other.
  `GET /free HTTP/1.1\r\nHost: shop.example\r\n\r\n${smuggled}`,
  `GET /free HTTP/1.1\r\nHost: shop.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n${smuggled}`,
];

const withHost = (port: number, bytes: string): string => bytes.replaceAll("shop.example", `127.0.0.1:${port}`);
const ask = (port: number, target: string) => rawRequest(port, withHost(port, requestText({ target })), 20_000);

/** One request that counts; from then on the limit of this address is used up. */
async function useUp(port: number): Promise<void> {
  expect([(await ask(port, TARGET)).status, (await ask(port, TARGET)).status]).toEqual([200, 429]);
}

const limited = (): string[] => seen.filter((path) => /^\/*v1/.test(path));

/** The limit is used up before. */
async function attack(port: number, requests: readonly string[]): Promise<void> {
  seen.length = 0;
  for (let at = 0; at < requests.length; at += 8) {
    const some = requests.slice(at, at + 8);
    await Promise.all(some.map((bytes) => rawRequest(port, withHost(port, bytes))));
    expect(limited(), some.map((bytes) => JSON.stringify(bytes.slice(0, 200))).join("\n")).toEqual([]);
  }
  // It still works for the honest: the limit is the limit, and what is free is free.
  expect([(await ask(port, TARGET)).status, (await ask(port, "/free")).status]).toEqual([429, 200]);
}

/** Small ones: all of them fit into what the gateways and Sluice accept. */
const thousand = Array.from({ length: 1_100 }, () => "A: a");
const askBehindThousand = (port: number, target: string) =>
  rawRequest(port, withHost(port, requestText({ target, headers: thousand })), 20_000);

const withHeaders = hostileHeaders.map((headers) => requestText({ target: TARGET, headers }));

describe.each(gateways)("%s", (gateway) => {
  describe.skipIf(whyMissing(gateway))("under attack", () => {
    let service: RunningService;
    let server: ServerProcess;
    let port: number;
    let sluicePort: number;

    const startSluice = async (): Promise<void> => {
      const settings = { port: String(sluicePort), attributes: "attributes.yaml" };
      service = await startTestService({ rules, files: { "attributes.yaml": attributes }, settings });
    };
    beforeAll(async () => {
      [port, sluicePort] = [await freePort(), await freePort()];
      await startSluice();
      server = await startGateway(gateway, { port, app: appPort, sluice: sluicePort });
    });
    afterAll(async () => {
      await server?.stop();
      await service?.close();
    });

    test("no header and no framing opens it at a limit that is used up", async () => {
      await useUp(port);
      await attack(port, withHeaders);
      await attack(port, hostileRequests);
    }, 120_000);

    test("a thousand headers in front of the question do not hide it", async () => {
      seen.length = 0;
      expect((await ask(port, "/once")).status).toBe(200);
      for (let i = 0; i < 2; i++) expect((await askBehindThousand(port, "/once")).status).toBeGreaterThanOrEqual(400);
      expect(seen).toEqual(["/once"]);
    });

    test("a turn that is further away than the gateway waits is refused, and reaches nothing uncounted", async () => {
      seen.length = 0;
      const statuses = [(await ask(port, "/paced")).status];
      // Caddy and Traefik wait as long as Sluice does, and pass nothing meanwhile: their clients give up first.
      const patient = gateway === "caddy" || gateway === "traefik";
      if (!patient) for (let i = 0; i < 5; i++) statuses.push((await ask(port, "/paced")).status);
      else await Promise.all(Array.from({ length: 5 }, () => rawRequest(port, requestText({ target: "/paced" }), 300)));
      expect(statuses).toEqual(patient ? [200] : [200, 429, 429, 429, 429, 429]);
      expect(seen).toEqual(["/paced"]);
    });

    test("four hundred rules that apply make no answer that is too big for it", async () => {
      seen.length = 0;
      const passed = await ask(port, "/many");
      expect(passed.status).toBe(200);
      for (let i = 0; i < 3; i++) expect((await ask(port, "/many")).status).toBe(429);
      expect(seen).toEqual(["/many"]);
    });

    test("while Sluice is away it does what its example says, and judges again once it is back", async () => {
      await service.close();
      seen.length = 0;
      const away = [(await ask(port, TARGET)).status, (await ask(port, TARGET)).status];
      const expected = { nginx: 200, haproxy: 200, caddy: 502, traefik: 500 }[gateway];
      expect(away).toEqual([expected, expected]);
      expect(limited()).toHaveLength(expected === 200 ? 2 : 0);

      await startSluice();
      // HAProxy looks once a second. Traefik hands the fields to the application only, and answers 500 until then.
      const isBack = (answer: RawAnswer) =>
        answer.status === 200 && (gateway === "traefik" || /\nratelimit: "probe"/i.test(answer.text));
      while (!isBack(await ask(port, "/probe"))) await sleep(50);
      await useUp(port);
    });
  });
});

/** Takes connections and is healthy, but answers as the path that it is asked about says. */
async function brokenSluice(): Promise<Server> {
  const server = createServer((request, response) => {
    const asked = String(request.headers["x-forwarded-uri"]);
    if (request.url === "/healthz") response.end("ok");
    else if (asked.endsWith("/gone")) response.destroy();
    else if (asked.endsWith("/huge")) response.writeHead(200, { "RateLimit-Policy": "x".repeat(60_000) }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

describe.each(["nginx", "haproxy"] as const)("%s", (gateway) => {
  test.skipIf(whyMissing(gateway))(
    "a Sluice that is reached, and does not answer in time or at all, does not open it",
    async () => {
      const sluice = await brokenSluice();
      const port = await freePort();
      const sluicePort = (sluice.address() as AddressInfo).port;
      const server = await startGateway(gateway, { port, app: appPort, sluice: sluicePort }, "200ms");
      seen.length = 0;
      try {
        const answers = await Promise.all(["silent", "gone", "huge"].map((way) => ask(port, `/${way}`)));
        expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
        expect(seen).toEqual([]);
      } finally {
        await server.stop();
        sluice.closeAllConnections();
        sluice.close();
      }
    },
  );
});

describe("the proxy under attack", () => {
  test("no header and no framing opens it at a limit that is used up", async () => {
    await using service = await startTestService({
      rules,
      // Its clients are strangers; a gateway speaks for its own.
      files: { "attributes.yaml": attributes.replace("[loopback]", "[]") },
      settings: { attributes: "attributes.yaml", upstream: `http://127.0.0.1:${appPort}` },
    });
    const port = Number(new URL(service.proxy!).port);
    await useUp(port);
    await attack(port, withHeaders);
    await attack(port, hostileRequests);
  }, 120_000);
});
