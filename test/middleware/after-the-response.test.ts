/** Every adapter, over real HTTP: leases are held exactly as long as the response runs, and refunds come after it. */
import { request as httpRequest } from "node:http";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { describe, expect, test, vi } from "vitest";
import { frameworks } from "./apps/frameworks.js";
import type { ServedApp } from "./apps/served-app.js";

const onePlace: Rule = { id: "slots", key: [], algorithm: "concurrency", limit: 1 };
const three: Rule = { id: "three", key: [], algorithm: "fixed-window", limit: 3, window: "1d" };

async function remaining(limiter: Limiter): Promise<number> {
  return (await limiter.peek({}, { cost: 0 })).remaining!;
}

/** What happens after a response is not awaited by anyone; it is there within a turn or two of the event loop. */
async function becomes(limiter: Limiter, expected: number): Promise<void> {
  await vi.waitFor(async () => expect(await remaining(limiter)).toBe(expected), { timeout: 5_000, interval: 5 });
}

/** Starts a request, and waits until the first part of its response is here. */
async function begin(
  app: ServedApp,
  path: string,
): Promise<{ body: ReadableStreamDefaultReader; abort: () => void; status: number }> {
  const controller = new AbortController();
  const response = await fetch(app.url + path, { signal: controller.signal });
  const body = response.body!.getReader();
  await body.read();
  return { body, status: response.status, abort: () => controller.abort() };
}

describe.each(frameworks)("$name", ({ serve }) => {
  test("a lease is held while the response streams, and released when it is finished", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    await using app = await serve({ limiter });
    const first = await begin(app, "/stream");
    expect(await remaining(limiter)).toBe(0);
    const refused = await fetch(app.url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("ratelimit-policy")).toBe('"slots";q=1;qu="concurrent-requests"');
    expect(await refused.json()).toMatchObject({
      detail: expect.stringContaining('All 1 places of "slots" are taken.'),
    });

    app.stage.finish();
    while (!(await first.body.read()).done);
    await becomes(limiter, 1);
    const next = await fetch(app.url);
    expect(next.status).toBe(200);
    expect(next.headers.get("ratelimit")).toBe('"slots";r=0');
  });

  test("a lease is released when the client goes away in the middle", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    await using app = await serve({ limiter });
    const first = await begin(app, "/stream");
    expect(await remaining(limiter)).toBe(0);
    first.abort();
    await becomes(limiter, 1);
    app.stage.finish();
  });

  test("a lease is released when the handler fails, before or after the first byte", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    await using app = await serve({ limiter });
    expect((await fetch(`${app.url}/fail`)).status).toBe(500);
    await becomes(limiter, 1);
    await fetch(`${app.url}/break`).then(
      (response) => response.text().catch(() => undefined),
      () => undefined,
    );
    await becomes(limiter, 1);
  });

  test("a lease outlives its term while the response goes on", async () => {
    const limiter = createLimiter({ rules: [{ ...onePlace, ttl: "300ms" }] });
    await using app = await serve({ limiter });
    const first = await begin(app, "/stream");
    // Real time, because leases are renewed by timers and end by the store's clock.
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await remaining(limiter)).toBe(0);
    app.stage.finish();
    while (!(await first.body.read()).done);
    await becomes(limiter, 1);
  });

  test("a client that leaves before the answer holds no place", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    let arrived: () => void = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    let proceed: () => void = () => {};
    const permission = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    await using app = await serve({
      limiter,
      attributes: async () => {
        arrived();
        await permission;
        return {};
      },
    });
    const request = httpRequest(`${app.url}/stream`).on("error", () => {});
    request.end();
    await arrival;
    request.destroy();
    // The server must have seen the connection end before it decides.
    await new Promise((resolve) => setTimeout(resolve, 50));
    const decided = new Promise<boolean>((resolve) => {
      limiter.on("decision", ({ lease }) => resolve(lease !== undefined));
    });
    proceed();
    expect(await decided).toBe(true);
    await becomes(limiter, 1);
    app.stage.finish();
  });

  test("skipSuccessful gives back what successful requests were charged, and keeps the charge of failed ones", async () => {
    const limiter = createLimiter({ rules: [three] });
    await using app = await serve({ limiter, skipSuccessful: true });
    for (let i = 0; i < 5; i++) {
      expect((await fetch(app.url)).status).toBe(200);
      await becomes(limiter, 3);
    }
    await fetch(`${app.url}/fail`);
    await fetch(`${app.url}/fail`);
    await becomes(limiter, 1);
  });

  test("skipFailed gives back what failed and aborted requests were charged, and keeps the charge of successful ones", async () => {
    const limiter = createLimiter({ rules: [three] });
    await using app = await serve({ limiter, skipFailed: true });
    for (let i = 0; i < 5; i++) {
      expect((await fetch(`${app.url}/fail`)).status).toBe(500);
      await becomes(limiter, 3);
    }
    const cutOff = await begin(app, "/stream");
    expect(await remaining(limiter)).toBe(2);
    cutOff.abort();
    await becomes(limiter, 3);
    expect((await fetch(app.url)).status).toBe(200);
    await becomes(limiter, 2);
    app.stage.finish();
  });
});
