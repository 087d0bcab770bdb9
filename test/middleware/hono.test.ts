/** What only Hono has: runtimes other than Node, where a response ends with its body, and handlers that return a Response. */
import { type Context, Hono } from "hono";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { rateLimiter } from "sluice/hono";
import { describe, expect, test, vi } from "vitest";
import { honoApp } from "./apps/hono-app.js";
import { Stage } from "./apps/served-app.js";

const onePlace: Rule = { id: "slots", key: [], algorithm: "concurrency", limit: 1 };

async function becomes(limiter: Limiter, expected: number): Promise<void> {
  const remaining = async () => (await limiter.peek({}, { cost: 0 })).remaining;
  await vi.waitFor(async () => expect(await remaining()).toBe(expected), { timeout: 2_000, interval: 5 });
}

describe("without Node's response", () => {
  test("a lease ends when the body has been read", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    const stage = new Stage();
    const app = honoApp({ limiter }, stage);
    const first = await app.request("/stream");
    const body = first.body!.getReader();
    await body.read();
    expect((await app.request("/")).status).toBe(429);
    stage.finish();
    while (!(await body.read()).done);
    await becomes(limiter, 1);
    const next = await app.request("/");
    expect(next.status).toBe(200);
    expect(await next.text()).toBe("ok");
    await becomes(limiter, 1);
  });

  test("a lease ends when the body is dropped, and when it breaks", async () => {
    const limiter = createLimiter({ rules: [onePlace] });
    const stage = new Stage();
    const app = honoApp({ limiter }, stage);
    const dropped = await app.request("/stream");
    await dropped.body!.cancel();
    await becomes(limiter, 1);
    const broken = await app.request("/break");
    await expect(broken.text()).rejects.toThrow("the handler broke");
    await becomes(limiter, 1);
    stage.finish();
  });

  test("the runtime's address is counted where the options tell it", async () => {
    const app = new Hono();
    app.use(rateLimiter({ limit: 1, window: "1m", address: (c) => c.req.header("x-peer") }));
    app.get("/", (c) => c.text("ok"));
    const ask = async (peer: string) => (await app.request("/", { headers: { "x-peer": peer } })).status;
    expect([await ask("192.0.2.1"), await ask("192.0.2.2"), await ask("192.0.2.1")]).toEqual([200, 200, 429]);
  });
});

test("fields are on a Response that the handler made itself, and those of an inner limiter speak for both", async () => {
  const app = new Hono();
  const limits = (name: string, limit: number) =>
    rateLimiter({ name, limit, window: "1m", address: () => "192.0.2.1" });
  app.use(limits("outer", 10));
  app.get("/one", () => new Response("ok"));
  app.get("/two", limits("inner", 3), () => new Response("ok"));
  expect((await app.request("/one")).headers.get("ratelimit")).toBe('"outer";r=9;t=60');
  const two = await app.request("/two");
  expect(two.headers.get("ratelimit-policy")).toBe('"outer";q=10;w=60, "inner";q=3;w=60');
  expect(two.headers.get("ratelimit")).toBe('"inner";r=2;t=60');
});

test("a refusal that the application makes keeps the status it was given", async () => {
  const app = new Hono();
  const onRefused = (c: Context) => c.text("slow down", 403);
  app.use(rateLimiter({ limit: 1, window: "1m", address: () => "192.0.2.1", onRefused }));
  app.get("/", (c) => c.text("ok"));
  await app.request("/");
  const refused = await app.request("/");
  expect([refused.status, await refused.text(), refused.headers.get("retry-after")]).toEqual([403, "slow down", "60"]);
});
