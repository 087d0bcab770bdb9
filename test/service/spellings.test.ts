/**
 * However a path is spelled: where the application's own router, or a real nginx, takes it for /login, it is counted as /login.
 * Spellings are made at random from all that routers are known to fold; the seed is printed with a failure.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fc from "fast-check";
import type { Rule } from "sluice";
import { rateLimit } from "sluice/express";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import type { ServerProcess } from "../harness/server-process.js";
import { startGateway } from "./gateway.js";
import { rawRequest, requestText } from "./raw-request.js";
import { type RunningService, startTestService } from "./running-service.js";

/** Each try counts under a key of its own. The limit is 1: the first request that reaches the handler is the last. */
const rules: Rule[] = ["/login", "/expensive/**"].map((path, i) => ({
  id: `guard-${i}`,
  match: { path },
  key: ["tenant"],
  algorithm: "fixed-window",
  limit: 1,
  window: "1d",
}));
const folding = "paths: { ignoreCase: true, ignoreTrailingSlash: true }\n";
const mapping = "attributes: { tenant: { header: x-tenant } }\ntrustedProxies: [loopback]\n";

const escaped = (text: string): string =>
  [...text].map((one) => `%${one.charCodeAt(0).toString(16).padStart(2, "0")}`).join("");

const letter = (plain: string) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant(plain) },
    fc.constantFrom(escaped(plain), escaped(plain).toUpperCase(), plain.toUpperCase()),
  );
const word = (text: string) => fc.tuple(...[...text].map(letter)).map((letters) => letters.join(""));
const slash = fc.oneof(
  { weight: 5, arbitrary: fc.constant("/") },
  fc.constantFrom(
    "//",
    "/./",
    "/%2e/",
    "/%2E//",
    "/x/../",
    "/x/%2e%2e/",
    "/x/.%2E/",
    "/x//../",
    "/%ff/../",
    "%2f",
    "%5c",
    "\\",
    "/..;/",
    "/;a=1/",
  ),
);
const tail = fc.constantFrom(
  "",
  "",
  "",
  "?q=1",
  "?../x",
  "#f",
  "#f?x",
  "/",
  "/.",
  "/x/..",
  "/%2e",
  ";a=1",
  "%00",
  "%",
  "%20",
  "\xa0",
  "#f\xa0",
);
const prefix = fc.constantFrom("", "", "", "http://HOST", "HTTP://HOST", "http://other.example");
const spelling = (path: string) =>
  fc
    .tuple(
      prefix,
      ...path
        .slice(1)
        .split("/")
        .flatMap((part) => [slash, word(part)]),
      tail,
    )
    .map((parts) => parts.join(""));

/** What the application's handlers saw, by tenant. */
const reached = new Map<string, number>();
const note = (request: { headers: Record<string, unknown> }): void => {
  const tenant = String(request.headers["x-tenant"]);
  reached.set(tenant, (reached.get(tenant) ?? 0) + 1);
};

/** Express, by its own defaults: any case, any trailing slash, and a mount that compares by prefix. */
function application(): express.Express {
  const app = express();
  app.all("/login", (req, res) => {
    note(req);
    res.send("login");
  });
  app.use("/expensive", (req, res) => {
    note(req);
    res.send("expensive");
  });
  return app;
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Ends what hangs; nothing is measured. */
const PATIENCE_MS = 240_000;

let tries = 0;

/** Three times the same spelling: at most one may reach the handler, and none if the plain path was there before. */
async function holds(port: number, spelled: string, { plain }: { plain: string }): Promise<void> {
  // Caddy serves a site by its host.
  const host = `127.0.0.1:${port}`;
  const target = spelled.replace("HOST", host);
  const first = `t${tries++}`;
  for (let i = 0; i < 3; i++) await rawRequest(port, requestText({ target, host, headers: [`X-Tenant: ${first}`] }));
  expect(reached.get(first) ?? 0, `${target} alone`).toBeLessThanOrEqual(1);

  const second = `t${tries++}`;
  for (const one of [plain, target, target])
    await rawRequest(port, requestText({ target: one, host, headers: [`X-Tenant: ${second}`] }));
  expect(reached.get(second) ?? 0, `${target} after ${plain}`).toBe(1);
}

const paths = [
  { path: "/login", plain: "/login" },
  { path: "/expensive/x", plain: "/expensive/x" },
];

async function attack(port: number): Promise<void> {
  for (const { path, plain } of paths) {
    await fc.assert(
      fc.asyncProperty(spelling(path), (target) => holds(port, target, { plain })),
      { numRuns: 60 },
    );
  }
  // A path that leaves the mount again: Express still takes it for the mount's.
  await holds(port, "/expensive/../other", { plain: "/expensive/x" });
  await holds(port, "/expensive/%2e%2e/other", { plain: "/expensive/x" });
}

describe("in front of Express", () => {
  let app: Server;
  let service: RunningService;
  let proxyPort: number;

  beforeAll(async () => {
    app = createServer(application());
    const upstream = `http://127.0.0.1:${await listen(app)}`;
    service = await startTestService({
      rules,
      files: { "attributes.yaml": mapping + folding },
      settings: { attributes: "attributes.yaml", upstream },
    });
    proxyPort = Number(new URL(service.proxy!).port);
  });
  afterAll(async () => {
    await service?.close();
    app?.closeAllConnections();
    app?.close();
  });

  test("no spelling escapes the proxy", () => attack(proxyPort), PATIENCE_MS);

  test(
    "no spelling escapes the middleware",
    async () => {
      const guarded = express();
      const attributes = (req: express.Request) => ({ tenant: req.get("x-tenant") });
      guarded.use(rateLimit({ rules, attributes, paths: { ignoreCase: true, ignoreTrailingSlash: true } }));
      guarded.use(application());
      const server = createServer(guarded);
      await attack(await listen(server));
      server.closeAllConnections();
      server.close();
    },
    PATIENCE_MS,
  );

  describe.each(["nginx", "caddy", "traefik", "haproxy"] as const)("%s and forward-auth", (gateway) => {
    let server: ServerProcess;
    let port: number;
    beforeAll(async () => {
      port = await freePort();
      if (whyMissing(gateway)) return;
      server = await startGateway(gateway, {
        port,
        app: (app.address() as AddressInfo).port,
        sluice: Number(new URL(service.http).port),
      });
    });
    afterAll(() => server?.stop());

    test.skipIf(whyMissing(gateway))("no spelling escapes", () => attack(port), PATIENCE_MS);
  });
});

test("an encoded slash is refused, kept or decoded, and what is passed on is what was judged", async () => {
  const seen: string[] = [];
  const upstream = createServer((request, response) => {
    seen.push(request.url!);
    response.end();
  });
  const url = `http://127.0.0.1:${await listen(upstream)}`;
  for (const [encodedSlashes, statuses, passedOn] of [
    ["refuse", [400, 400, 400], []],
    ["keep", [200, 200, 200], ["/api%2Fx?y=%2f", "/api%5Cx", "/api%5Cx"]],
    ["decode", [200, 429, 429], ["/api/x?y=%2f"]],
  ] as const) {
    const api: Rule = {
      id: "api",
      match: { path: "/api/x" },
      key: [],
      algorithm: "fixed-window",
      limit: 1,
      window: "1d",
    };
    await using service = await startTestService({
      rules: [api],
      files: { "attributes.yaml": `paths: { encodedSlashes: ${encodedSlashes} }\n` },
      settings: { attributes: "attributes.yaml", upstream: url },
    });
    seen.length = 0;
    const port = Number(new URL(service.proxy!).port);
    const came: number[] = [];
    for (const target of ["/api%2fx?y=%2f", "/api%5cx", "/api\\x"]) {
      came.push((await rawRequest(port, requestText({ target }))).status);
    }
    expect([encodedSlashes, came, seen]).toEqual([encodedSlashes, statuses, passedOn]);
  }
  upstream.closeAllConnections();
  upstream.close();
});
