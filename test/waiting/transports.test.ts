/** Waiting over real HTTP: every middleware, the proxy, forward-auth, the API and gRPC. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { frameworks } from "../middleware/apps/frameworks.js";
import { type RunningService, startTestService } from "../service/running-service.js";

/** A minute apart: whoever waits, waits for the whole test. */
const slow: Rule = { id: "slow", key: [], algorithm: "gcra", limit: 1, window: "1m", burst: 1, maxWait: "1h" };
const quick: Rule = { ...slow, id: "quick", window: "150ms" } as Rule;

const waiting = (limiter: Limiter): number => limiter.waitingStats().get("slow") ?? 0;
const becomes = (limiter: Limiter, expected: number): Promise<void> =>
  vi.waitFor(() => expect(waiting(limiter)).toBe(expected), { timeout: 10_000, interval: 5 });

describe.each(frameworks)("$name", ({ serve }) => {
  test("a request waits for its turn, and is served", async () => {
    const limiter = createLimiter({ rules: [quick] });
    await using app = await serve({ limiter });
    const answers = await Promise.all([fetch(app.url), fetch(app.url), fetch(app.url)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test("a client that leaves gives its turn back, and beyond maxWaiting requests are refused with a reason", async () => {
    const limiter = createLimiter({ rules: [slow], maxWaiting: 1 });
    await using app = await serve({ limiter });
    expect((await fetch(app.url)).status).toBe(200);
    const controller = new AbortController();
    const left = fetch(app.url, { signal: controller.signal }).catch(() => "left");
    await becomes(limiter, 1);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ detail: expect.stringContaining("Too many requests wait") });
    controller.abort();
    expect(await left).toBe("left");
    await becomes(limiter, 0);
    const { delayMs } = await limiter.check({});
    expect(delayMs).toBeGreaterThan(0);
    expect(delayMs).toBeLessThanOrEqual(60_000);
    await limiter.close();
  });
});

describe("the service", () => {
  const upstream = createServer((_request, response) => void response.end("served"));
  let service: RunningService;

  beforeAll(async () => {
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    service = await startTestService({
      settings: {
        upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
        "max-waiting": "1",
      },
      rules: [
        { ...slow, id: "api", match: { door: "api" } } as Rule,
        { ...slow, id: "auth", match: { path: "/auth" } } as Rule,
        { ...slow, id: "proxy", match: { path: "/proxy" } } as Rule,
        { ...slow, id: "patience", match: { path: "/patience" } } as Rule,
        { ...quick, id: "quick", match: { path: "/quick" } } as Rule,
        { id: "resolved", match: { path: "/read" }, key: [], algorithm: "fixed-window", limit: 9, window: "1d" },
        { ...slow, id: "received", match: { path: "/twice/**" } } as Rule,
      ],
    });
  });

  afterAll(async () => {
    await service?.close();
    upstream.close();
  });

  const check = async (attributes: object, cost = 1): Promise<{ delayMs: number; allowed: boolean }> => {
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ attributes, cost });
    return (await (await fetch(`${service.http}/v1/check`, { method: "POST", headers, body })).json()) as never;
  };
  const waitingIs = (rule: string, expected: number): Promise<void> =>
    vi.waitFor(
      async () => {
        const metrics = await (await fetch(`${service.http}/metrics`)).text();
        const found = new RegExp(`sluice_waiting_requests\\{rule="${rule}"\\} (\\d+)`).exec(metrics)?.[1] ?? "0";
        expect(Number(found)).toBe(expected);
      },
      { timeout: 10_000, interval: 20 },
    );

  test("POST /v1/check answers at once with delayMs", async () => {
    expect(await check({ door: "api" })).toMatchObject({ allowed: true, delayMs: 0 });
    const second = await check({ door: "api" });
    expect(second.allowed).toBe(true);
    expect(second.delayMs).toBeGreaterThan(0);
    expect(second).toMatchObject({ checks: [{ rule: "api", delayMs: second.delayMs }] });
  });

  test.each([
    ["the proxy", () => `${service.proxy}/quick`, {}],
    ["forward-auth", () => `${service.http}/v1/forward-auth`, { "x-forwarded-uri": "/quick" }],
  ])("%s waits, and then passes the request", async (_, url, headers) => {
    for (let i = 0; i < 3; i++) expect((await fetch(url(), { headers })).status).toBe(200);
  });

  test("forward-auth refuses a turn that is further away than its gateway waits, and takes none", async () => {
    const ask = async (query: string, path = "/patience") => {
      const answer = await fetch(`${service.http}/v1/forward-auth${query}`, { headers: { "x-forwarded-uri": path } });
      return [answer.status, Number(answer.headers.get("retry-after") ?? 0) > 0];
    };
    expect(await ask("?wait=500ms")).toEqual([200, false]);
    expect(await ask("?wait=500ms")).toEqual([429, true]);
    expect(await ask("?deny=403&wait=1.5s")).toEqual([403, true]);
    // What cannot be read is no patience.
    for (const query of ["?wait=0", "?wait=", "?wait=soon", "?wait=1h&wait=1h"]) {
      expect(await ask(query), query).toEqual([429, true]);
    }
    // Read in two ways, it must have both turns in that time.
    expect(await ask("?wait=500ms", "/x/../patience")).toEqual([429, true]);
    const next = await check({ path: "/patience" });
    expect(next.delayMs).toBeGreaterThan(0);
    expect(next.delayMs).toBeLessThanOrEqual(60_000);
    expect(await ask("?wait=1s", "/quick")).toEqual([200, false]);
    expect(await ask("?wait=1s", "/quick")).toEqual([200, false]);
  });

  test("forward-auth: a client that leaves while one reading of its path waits is charged for neither", async () => {
    const headers = { "x-forwarded-uri": "/twice/../read" };
    const auth = (signal?: AbortSignal) =>
      fetch(`${service.http}/v1/forward-auth`, { headers, signal: signal ?? null });
    expect((await auth()).status).toBe(200);
    const controller = new AbortController();
    const left = auth(controller.signal).catch(() => "left");
    await waitingIs("received", 1);
    controller.abort();
    expect(await left).toBe("left");
    await waitingIs("received", 0);
    const looked = await check({ path: "/read" }, 0);
    expect(looked).toMatchObject({ checks: [{ rule: "resolved", remaining: 8 }] });
  });

  test.each([
    ["proxy", () => `${service.proxy}/proxy`, {}, "/proxy"],
    ["auth", () => `${service.http}/v1/forward-auth`, { "x-forwarded-uri": "/auth" }, "/auth"],
  ])(
    "%s: a client that leaves gives its turn back; beyond the bound requests are refused",
    async (rule, url, headers, path) => {
      expect((await fetch(url(), { headers })).status).toBe(200);
      const controller = new AbortController();
      const left = fetch(url(), { headers, signal: controller.signal }).catch(() => "left");
      await waitingIs(rule, 1);
      const refused = await fetch(url(), { headers });
      expect(refused.status).toBe(429);
      expect(await refused.json()).toMatchObject({ detail: expect.stringContaining("Too many requests wait") });
      controller.abort();
      expect(await left).toBe("left");
      await waitingIs(rule, 0);
      const next = await check({ path });
      expect(next.delayMs).toBeGreaterThan(0);
      expect(next.delayMs).toBeLessThanOrEqual(60_000);
    },
  );
});
