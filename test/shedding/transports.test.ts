/** Load shedding over real HTTP: every middleware, the proxy, forward-auth, the API and gRPC answer alike, and know when a request has ended. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { frameworks } from "../middleware/apps/frameworks.js";
import { type RunningService, startTestService } from "../service/running-service.js";

const onePlace = (more: object = {}): Rule =>
  ({ id: "keep-serving", key: [], algorithm: "load-shedding", signal: "inflight", limit: 1, ...more }) as Rule;

const inFlight = (limiter: Limiter): number => limiter.sheddingStats()[0]!.inFlight;

async function becomes(limiter: Limiter, expected: number): Promise<void> {
  await vi.waitFor(() => expect(inFlight(limiter)).toBe(expected), { timeout: 10_000, interval: 5 });
}

async function expectShed(response: Response): Promise<void> {
  expect(response.status).toBe(503);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  expect(response.headers.get("ratelimit")).toBeNull();
  expect(await response.json()).toMatchObject({
    type: expect.stringContaining("#temporary-reduced-capacity"),
    status: 503,
    "violated-policies": ["keep-serving"],
    detail: expect.stringContaining("shedding load"),
  });
}

describe.each(frameworks)("$name", ({ serve }) => {
  test("sheds with 503 while a response runs, and serves when it has ended", async () => {
    const limiter = createLimiter({ rules: [onePlace()] });
    await using app = await serve({ limiter });
    const first = await fetch(`${app.url}/stream`);
    const body = first.body!.getReader();
    await body.read();
    expect(inFlight(limiter)).toBe(1);
    await expectShed(await fetch(app.url));
    app.stage.finish();
    while (!(await body.read()).done);
    await becomes(limiter, 0);
    expect((await fetch(app.url)).status).toBe(200);
  });

  test("a client that goes away, or a handler that fails, frees the place", async () => {
    const limiter = createLimiter({ rules: [onePlace()] });
    await using app = await serve({ limiter });
    const controller = new AbortController();
    const first = await fetch(`${app.url}/stream`, { signal: controller.signal });
    await first.body!.getReader().read();
    controller.abort();
    await becomes(limiter, 0);
    app.stage.finish();
    expect((await fetch(`${app.url}/fail`)).status).toBe(500);
    await becomes(limiter, 0);
  });
});

describe("the service", () => {
  let upstream: Server;
  let service: RunningService;
  const held: ServerResponse[] = [];
  const seenClasses: (string | undefined)[] = [];

  beforeAll(async () => {
    upstream = createServer((incoming, response) => {
      seenClasses.push(incoming.headers["x-criticality"] as string | undefined);
      if (incoming.url !== "/hold") return void response.end("plain");
      held.push(response);
      response.write("first");
    });
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const { port } = upstream.address() as AddressInfo;
    service = await startTestService({
      rules: [
        onePlace({
          match: { path: "/hold" },
          class: { attribute: "criticality", default: "normal" },
          classes: { normal: 1, critical: 2 },
        }),
        onePlace({ id: "by-report", match: { path: "/reported" }, signal: "reported", limit: undefined }),
        onePlace({
          id: "by-upstream",
          match: { path: "/behind" },
          key: ["upstream"],
          signal: "reported",
          limit: undefined,
        }),
      ],
      files: {
        "attributes.yaml":
          "trustedProxies: [192.0.2.1]\nattributes: { criticality: { header: x-criticality, trusted: true } }\n",
      },
      settings: { upstream: `http://127.0.0.1:${port}`, attributes: "attributes.yaml" },
    });
  });
  afterAll(async () => {
    for (const response of held) response.destroy();
    await service.close();
    upstream.close();
  });

  const post = async (path: string, body: object): Promise<Response> =>
    await fetch(`${service.http}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const check = async (attributes: object): Promise<Record<string, unknown> & { lease?: { id: string } }> =>
    (await (await post("/v1/check", { attributes })).json()) as never;

  test("the proxy holds a place while the upstream answers, and forward-auth and the API are judged by it", async () => {
    const first = await fetch(`${service.proxy}/hold`);
    await first.body!.getReader().read();
    const shed = await fetch(`${service.proxy}/hold`, { headers: { "x-criticality": "critical" } });
    await expectShed(shed);
    const asked = await fetch(`${service.http}/v1/forward-auth`, { headers: { "x-forwarded-uri": "/hold" } });
    await expectShed(asked);
    const nginx = await fetch(`${service.http}/v1/forward-auth?deny=403`, { headers: { "x-forwarded-uri": "/hold" } });
    expect(nginx.status).toBe(403);
    expect(await check({ path: "/hold" })).toMatchObject({ allowed: false, reason: "load", rule: "keep-serving" });
    held.pop()!.end();
    await vi.waitFor(async () => {
      const again = await check({ path: "/hold" });
      await post("/v1/release", { lease: again.lease?.id ?? "p.none" });
      expect(again.allowed).toBe(true);
    });
  });

  test("a class in a header of a stranger is neither believed nor passed on", () => {
    expect(seenClasses.length).toBeGreaterThan(0);
    expect(seenClasses.every((seen) => seen === undefined)).toBe(true);
  });

  test("forward-auth holds no place: it cannot know the end", async () => {
    for (let i = 0; i < 3; i++) {
      const asked = await fetch(`${service.http}/v1/forward-auth`, { headers: { "x-forwarded-uri": "/hold" } });
      expect(asked.status).toBe(200);
    }
  });

  test("over HTTP a check holds its place until its lease is released", async () => {
    const held = await check({ path: "/hold" });
    expect(held.allowed).toBe(true);
    expect((await check({ path: "/hold" })).reason).toBe("load");
    expect(await check({ path: "/hold", criticality: "critical" })).toMatchObject({ allowed: true });
    expect(await (await post("/v1/renew", { lease: held.lease!.id })).json()).toMatchObject({ renewed: true });
    expect(await (await post("/v1/release", { lease: held.lease!.id })).json()).toEqual({ released: true });
    expect(await (await post("/v1/release", { lease: held.lease!.id })).json()).toEqual({ released: false });
  });

  test("a backend reports its utilisation, and requests are shed by it", async () => {
    expect((await check({ path: "/reported" })).allowed).toBe(true);
    const answer = await post("/v1/utilisation", { value: 1, source: "db-1", ttl: "1m" });
    expect([answer.status, await answer.json()]).toEqual([200, { accepted: true, expiresAfterMs: 60_000 }]);
    await vi.waitFor(async () => expect((await check({ path: "/reported" })).reason).toBe("load"), {
      timeout: 60_000,
      interval: 50,
    });
    const metrics = await (await fetch(`${service.http}/metrics`)).text();
    expect(metrics).toMatch(/sluice_load_utilisation\{rule="by-report"\} 1\n/);
    expect(metrics).toMatch(/sluice_load_requests_total\{rule="by-report",class="all",outcome="shed"\} [1-9]/);
    expect(metrics).toMatch(/sluice_load_limit\{rule="keep-serving"\} 1\n/);
  });

  test("the proxy has a gauge for its upstream, which a report of that upstream fills and another's does not", async () => {
    const behind = async (): Promise<number> => (await fetch(`${service.proxy}/behind`)).status;
    await post("/v1/utilisation", { value: 1, source: "elsewhere", key: "192.0.2.7:80", ttl: "1m" });
    for (let i = 0; i < 3; i++) expect(await behind()).toBe(200);
    const { port } = upstream.address() as AddressInfo;
    await post("/v1/utilisation", { value: 1, source: "app-1", key: `127.0.0.1:${port}`, ttl: "1m" });
    await vi.waitFor(async () => expect(await behind()).toBe(503), { timeout: 60_000, interval: 50 });
    expect((await check({ path: "/behind", upstream: "192.0.2.8:80" })).allowed).toBe(true);
  });

  test.each([
    ["above 1", { value: 1e9, source: "x" }],
    ["below 0", { value: -1, source: "x" }],
    ["no number", { value: "NaN", source: "x" }],
    ["without a source", { value: 0.5 }],
    ["with an endless term", { value: 0.5, source: "x", ttl: "10d" }],
    ["with a term that is none", { value: 0.5, source: "x", ttl: "soon" }],
    ["with an unknown field", { value: 0.5, source: "x", keys: "y" }],
  ])("a report %s is refused", async (_, body) => {
    const answer = await post("/v1/utilisation", body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ code: "invalid-request" });
  });
});

test("with an API token, a stranger's report sheds nobody", async () => {
  const token = "the-api-token-of-this-test";
  await using guarded = await startTestService({
    rules: [onePlace({ signal: "reported", limit: undefined })],
    settings: { "api-token": token },
  });
  const post = async (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
    await fetch(`${guarded.http}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  const report = { value: 1, source: "db-1", ttl: "1m" };
  for (const headers of [{}, { authorization: "Bearer wrong" }]) {
    expect((await post("/v1/utilisation", report, headers as Record<string, string>)).status).toBe(401);
  }
  const own = { authorization: `Bearer ${token}` };
  expect(await (await post("/v1/check", { attributes: {} }, own)).json()).toMatchObject({ allowed: true });
  const utilisation = async (): Promise<string> => await (await fetch(`${guarded.http}/metrics`)).text();
  expect(await utilisation()).toMatch(/sluice_load_utilisation\{rule="keep-serving"\} 0\n/);
  expect((await post("/v1/utilisation", report, own)).status).toBe(200);
  await vi.waitFor(
    async () => {
      const decision = (await (await post("/v1/check", { attributes: {} }, own)).json()) as { reason?: string };
      expect(decision.reason).toBe("load");
    },
    { timeout: 60_000, interval: 50 },
  );
});
