/** What strangers get of a running service: failed authentication and its traces, names that are not ours, streams, pages, readiness. */
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { flags, frameTypes } from "../../packages/server/src/grpc/http2/protocol.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startPostgres } from "../harness/postgres.js";
import { frame, headOf, messageOf, RawPeer } from "./http2-peer.js";
import { type Json, postJson, type RunningService, startTestService } from "./running-service.js";

const ADMIN = "the-admin-token-of-this-test";
const API = "the-api-token-of-this-test";
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
let service: RunningService;

beforeAll(async () => {
  service = await startTestService({ settings: { "admin-token": ADMIN, "api-token": API } });
});
afterAll(() => service.close());

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** With whatever Host a browser would send: fetch does not let one set it. */
function ask(
  path: string,
  {
    method = "GET",
    headers = {},
    body,
    to = service.http,
  }: { method?: string; headers?: Record<string, string>; body?: string; to?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${to}${path}`, { method, headers, agent: false }, (answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode!, headers: answer.headers, body: text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("failed authentication", () => {
  test("is counted by plane and credential, and audited when its minute is over, with its sum", async () => {
    const guarded = await startTestService({
      settings: { "admin-token": ADMIN, "api-token": API, database: `sqlite:${service.folder}/audit.db` },
    });
    const to = guarded.http;
    const own = { "x-sluice-dashboard": "1", "sec-fetch-site": "same-origin" };
    await ask("/admin/v1/rules", { headers: bearer("wrong"), to });
    await ask("/admin/v1/rules", { headers: { cookie: "sluice-session=made.up" }, to });
    await postJson(`${to}/admin/v1/session`, { token: "wrong" }, own);
    await postJson(`${to}/v1/check`, { attributes: {} }, bearer("wrong"));
    expect(await grpcStatus(guarded.grpc, "wrong")).toBe(UNAUTHENTICATED);
    // Nothing was tried here.
    await ask("/admin/v1/rules", { to });
    await postJson(`${to}/v1/check`, { attributes: {} });
    const metrics = (await ask("/metrics", { to })).body;
    const counted = [...metrics.matchAll(/^sluice_authentication_failures_total\{(.*)\} (\d+)$/gm)].map(
      ([, labels, n]) => `${labels} ${n}`,
    );
    expect(counted.sort()).toEqual([
      'plane="admin",credential="bearer" 1',
      'plane="admin",credential="session" 1',
      'plane="admin",credential="sign-in" 1',
      'plane="data",credential="bearer" 2',
    ]);
    await guarded.close();
    await using again = await startTestService({
      settings: { "admin-token": ADMIN, database: `sqlite:${service.folder}/audit.db` },
    });
    const { entries } = JSON.parse((await ask("/admin/v1/audit", { headers: bearer(ADMIN), to: again.http })).body);
    expect(entries.filter(({ action }: Json) => action === "authentication.failed")).toMatchObject([
      { actor: "unknown", target: "127.0.0.1", details: { failures: 5 } },
    ]);
  });

  test("on the data plane is slowed as well, and the right token passes at once, over HTTP and gRPC", async () => {
    await using guarded = await startTestService({ settings: { "api-token": API } });
    const check = (token: string) => postJson(`${guarded.http}/v1/check`, { attributes: {} }, bearer(token));
    for (let i = 0; i < 10; i++) {
      const { status, headers } = await check(`guess-${i}`);
      expect([status, headers.get("connection")]).toEqual([401, "keep-alive"]);
    }
    const slowed = await check("another-guess");
    expect([slowed.status, slowed.headers.get("connection")]).toEqual([401, "close"]);
    expect((await check(API)).status).toBe(200);
    expect(await grpcStatus(guarded.grpc, "another-guess")).toBe(UNAUTHENTICATED);
    expect(await grpcStatus(guarded.grpc, API)).toBe(INVALID_ARGUMENT);
  });

  test("is no faster in parallel: few answers are held, the other connections end, and the right token passes", async () => {
    await using guarded = await startTestService({ settings: { "api-token": API } });
    const leaving = new AbortController();
    let cut = 0;
    const guesses = Array.from({ length: 300 }, (_, i) =>
      fetch(`${guarded.http}/admin/v1/rules`, { headers: bearer(`guess-${i}`), signal: leaving.signal }).catch(() => {
        if (!leaving.signal.aborted) cut++;
      }),
    );
    await vi.waitFor(() => expect(cut).toBeGreaterThanOrEqual(150), { timeout: 30_000 });
    // Of one door and of the others: they count together.
    expect(await grpcStatus(guarded.grpc, "another-guess")).toBe(UNAVAILABLE);
    expect((await postJson(`${guarded.http}/v1/check`, { attributes: {} }, bearer(API))).status).toBe(200);
    expect(await grpcStatus(guarded.grpc, API)).toBe(INVALID_ARGUMENT);
    leaving.abort();
    await Promise.all(guesses);
  });

  test("is asked for before a message over gRPC is inflated", async () => {
    await using guarded = await startTestService({ settings: { "api-token": API } });
    const peer = await RawPeer.connect(Number(guarded.grpc.split(":")[1]));
    const bomb = messageOf(gzipSync(Buffer.alloc(2 ** 21)), 1);
    const statuses: (number | undefined)[] = [];
    for (const [i, token] of ["a-guess", API].entries()) {
      const id = 2 * i + 1;
      const head = headOf(SHOULD_RATE_LIMIT, { "grpc-encoding": "gzip", authorization: `Bearer ${token}` });
      peer.send(
        frame(frameTypes.headers, flags.endHeaders, id, head),
        frame(frameTypes.data, flags.endStream, id, bomb),
      );
      await peer.until(() => peer.answered.includes(id));
      statuses.push(peer.statusOf(id));
    }
    expect(statuses).toEqual([UNAUTHENTICATED, RESOURCE_EXHAUSTED]);
    peer.destroy();
  });

  test("a token in the query, in another header or in another scheme is none", async () => {
    for (const path of [`/admin/v1/rules?token=${ADMIN}`, `/admin/v1/rules?access_token=${ADMIN}`]) {
      expect((await ask(path)).status).toBe(401);
    }
    for (const headers of [{ "x-api-key": ADMIN }, { authorization: `Basic ${ADMIN}` }, { authorization: ADMIN }]) {
      expect((await ask("/admin/v1/rules", { headers })).status).toBe(401);
    }
  });

  test("no header turns one method into another", async () => {
    const { length } = service.rules;
    for (const name of ["x-http-method-override", "x-http-method", "x-method-override"]) {
      await ask("/admin/v1/rules/starter-per-user", { headers: { ...bearer(ADMIN), [name]: "DELETE" } });
    }
    expect(service.rules).toHaveLength(length);
  });
});

const UNAUTHENTICATED = 16;
const UNAVAILABLE = 14;
const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;
const SHOULD_RATE_LIMIT = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
/** The status of an empty call: 3 (invalid argument) where the token was right. */
function grpcStatus(address: string, token: string): Promise<number> {
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const bytes = (value: Buffer): Buffer => value;
  return new Promise((resolve) => {
    client.makeUnaryRequest(SHOULD_RATE_LIMIT, bytes, bytes, Buffer.alloc(0), metadata, (error) => {
      client.close();
      resolve(error?.code ?? 0);
    });
  });
}

describe("a Host that is not ours (DNS rebinding)", () => {
  const foreign = ["evil.example", "localhost.evil.com", "127.0.0.1.evil.com:8080"];
  const pages = ["/", "/rules", "/docs", "/docs/", "/openapi.json", "/admin/v1/rules", "/admin/v1/session", "/nowhere"];

  test.each(pages)("is refused at %s, with the right token too", async (path) => {
    for (const host of foreign) {
      const { status, body } = await ask(path, { headers: { host, ...bearer(ADMIN) } });
      expect([status, JSON.parse(body).code], host).toEqual([421, "foreign-host"]);
    }
    for (const host of ["localhost:8080", "[::1]:8080", "127.0.0.1"]) {
      expect((await ask(path, { headers: { host, ...bearer(ADMIN) } })).status, host).not.toBe(421);
    }
  });

  test("signs nobody in", async () => {
    const headers = {
      host: "evil.example",
      "content-type": "application/json",
      "x-sluice-dashboard": "1",
      origin: "http://evil.example",
    };
    const answer = await ask("/admin/v1/session", { method: "POST", headers, body: JSON.stringify({ token: ADMIN }) });
    expect([answer.status, answer.headers["set-cookie"]]).toEqual([421, undefined]);
  });

  test("is refused on the data plane where a browser asks; programs and gateways may use any name", async () => {
    await using open = await startTestService();
    const check = (headers: Record<string, string>) =>
      ask("/v1/check", {
        method: "POST",
        headers: { "content-type": "application/json", "content-length": "17", ...headers },
        body: '{"attributes":{}}',
        to: open.http,
      });
    expect((await check({ host: "evil.example", origin: "http://evil.example" })).status).toBe(421);
    expect((await check({ host: "evil.example" })).status).toBe(200);
    expect((await check({ host: "localhost", origin: "http://localhost" })).status).toBe(200);
    for (const path of ["/v1/forward-auth", "/healthz", "/readyz", "/metrics", "/healthcheck"]) {
      expect((await ask(path, { headers: { host: "shop.example" }, to: open.http })).status, path).toBe(200);
    }
  });

  test("passes where --allowed-hosts names it", async () => {
    await using named = await startTestService({ settings: { "allowed-hosts": "limits.example, other.example" } });
    const status = async (host: string) => (await ask("/docs/", { headers: { host }, to: named.http })).status;
    expect(await status("limits.example:443")).toBe(200);
    expect(await status("evil.example")).toBe(421);
  });
});

describe("live streams", () => {
  test("HEAD tells the headers and opens none", async () => {
    for (let i = 0; i < 150; i++) {
      const { status, headers } = await ask("/admin/v1/stats/stream", { method: "HEAD", headers: bearer(ADMIN) });
      expect([status, headers["content-type"]]).toEqual([200, "text/event-stream; charset=utf-8"]);
    }
  });

  test("one token holds at most twenty, others still get theirs, and a place that is left is free", async () => {
    const { body } = await postJson(
      `${service.http}/admin/v1/tokens`,
      { name: "watcher", role: "viewer" },
      bearer(ADMIN),
    );
    const ending = new AbortController();
    const stream = (token: string) =>
      fetch(`${service.http}/admin/v1/stats/stream`, { headers: bearer(token), signal: ending.signal });
    const opened = await Promise.all(Array.from({ length: 101 }, () => stream(body.token)));
    const statuses = opened.map(({ status }) => status);
    expect([statuses.filter((one) => one === 200).length, statuses.filter((one) => one === 503).length]).toEqual([
      20, 81,
    ]);
    expect(((await opened.find(({ status }) => status === 503)!.json()) as Json).code).toBe("too-many-streams");
    expect((await stream(ADMIN)).status).toBe(200);
    ending.abort();
    const later = new AbortController();
    await expect
      .poll(
        async () =>
          (await fetch(`${service.http}/admin/v1/stats/stream`, { headers: bearer(body.token), signal: later.signal }))
            .status,
      )
      .toBe(200);
    later.abort();
  });
});

test("/docs and the OpenAPI document have the dashboard's security headers", async () => {
  const dashboard = (await ask("/")).headers;
  for (const path of ["/docs", "/docs/", "/docs/static/swagger-ui-bundle.js", "/docs/json", "/openapi.json"]) {
    const { status, headers } = await ask(path);
    expect(status, path).toBe(200);
    expect(headers["content-security-policy"], path).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    for (const name of ["x-content-type-options", "x-frame-options", "referrer-policy", "cross-origin-opener-policy"]) {
      expect(headers[name], `${path} ${name}`).toBe(dashboard[name]);
    }
  }
});

test("no answer of the admin API may be kept by a cache, refusals neither", async () => {
  const paths = [
    "/rules",
    "/rules/starter-per-user",
    "/rules/none",
    "/versions",
    "/audit",
    "/tokens",
    "/session",
    "/stats",
    "/store",
    "/alerts",
    "/nowhere",
  ];
  for (const path of paths) {
    for (const headers of [bearer(ADMIN), {}]) {
      const { headers: answered } = await ask(`/admin/v1${path}`, { headers });
      expect([answered["cache-control"], answered["x-content-type-options"]], path).toEqual(["no-store", "nosniff"]);
    }
  }
});

test("names of tokens differ by more than case", async () => {
  const make = async (name: string) =>
    (await postJson(`${service.http}/admin/v1/tokens`, { name, role: "viewer" }, bearer(ADMIN))).status;
  expect(await make("Alice")).toBe(201);
  expect(await make("alice")).toBe(409);
  expect(await make("ALICE")).toBe(409);
  expect(await make("Admin")).toBe(409);
  for (const name of ["a\r\nset-cookie: x=1", "a\u202e", "a b", "", "*alice"]) expect(await make(name), name).toBe(400);
});

test.skipIf(whyMissing("postgresql"))(
  "/readyz tells where the database is only to those who have a token",
  async () => {
    const database = await startPostgres();
    await using down = await startTestService({
      settings: { "admin-token": ADMIN, "api-token": API, database: database.url },
    });
    const { port } = new URL(database.url);
    await database.stop();
    const ready = async (headers: Record<string, string>) => (await ask("/readyz", { headers, to: down.http })).body;
    await expect.poll(() => ready(bearer(ADMIN)), { timeout: 20_000 }).toContain(port);
    expect(await ready(bearer(API))).toContain(port);
    for (const headers of [{}, bearer("wrong")]) {
      const told = await ready(headers);
      expect(JSON.parse(told).configuration.database).toBe("down");
      expect(told).not.toContain(port);
      expect(told).not.toContain("127.0.0.1");
    }
  },
);
