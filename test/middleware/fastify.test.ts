/** What only Fastify has: limits by route, and the hook at which requests are counted. */
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { Readable } from "node:stream";
import fastify, { type FastifyInstance } from "fastify";
import { createLimiter, memoryStore } from "sluice";
import { RateLimitError, type RateLimitPluginOptions, rateLimit } from "sluice/fastify";
import { expect, test, vi } from "vitest";
import { Stage } from "./apps/served-app.js";

async function build(
  options: RateLimitPluginOptions,
  routes: (app: FastifyInstance) => void,
): Promise<FastifyInstance> {
  const app = fastify();
  await app.register(rateLimit, options);
  routes(app);
  await app.ready();
  return app;
}

test("a route's own limits replace the plugin's, false takes them away, and other options keep the plugin's limiter", async () => {
  await using app = await build({ limit: 10, window: "1m" }, (app) => {
    app.get("/plain", () => "ok");
    app.get("/tight", { config: { rateLimit: { limit: 1, window: "1h" } } }, () => "ok");
    app.get("/free", { config: { rateLimit: false } }, () => "ok");
    app.get("/dear", { config: { rateLimit: { cost: 5 } } }, () => "ok");
  });
  expect((await app.inject("/plain")).headers.ratelimit).toBe('"10-per-1m";r=9;t=60');
  const tight = await app.inject("/tight");
  expect(tight.headers["ratelimit-policy"]).toMatch(/^"get-tight-[0-9a-f]{8}";q=1;w=3600$/);
  expect((await app.inject("/tight")).statusCode).toBe(429);
  expect((await app.inject("/free")).headers.ratelimit).toBeUndefined();
  expect((await app.inject("/dear")).headers.ratelimit).toBe('"10-per-1m";r=4;t=60');
});

test("routes with equal limits count apart, on a shared store too", async () => {
  const own = () => ({ config: { rateLimit: { limit: 1, window: "1m" } } });
  await using app = await build({ store: memoryStore() }, (app) => {
    app.get("/a/b", own(), () => "ok");
    app.get("/a-b", own(), () => "ok");
    app.get("/unlimited", () => "ok");
  });
  expect((await app.inject("/a/b")).statusCode).toBe(200);
  expect((await app.inject("/a-b")).statusCode).toBe(200);
  expect((await app.inject("/a/b")).statusCode).toBe(429);
  expect((await app.inject("/unlimited")).headers.ratelimit).toBeUndefined();
});

test("routes that share one object of options count apart; a route and what Fastify adds to it count together", async () => {
  const strict = { config: { rateLimit: { limit: 1, window: "1m" } } };
  await using app = await build({}, (app) => {
    app.get("/a", strict, () => "ok");
    app.post("/a", strict, () => "ok");
    app.get("/b", strict, () => "ok");
    app.register(
      async (nested) => {
        nested.get("/", strict, () => "ok");
      },
      { prefix: "/c" },
    );
  });
  const ask = async (method: "GET" | "HEAD" | "POST", url: string) => (await app.inject({ method, url })).statusCode;
  expect([await ask("GET", "/a"), await ask("POST", "/a"), await ask("GET", "/b")]).toEqual([200, 200, 200]);
  expect([await ask("HEAD", "/a"), await ask("GET", "/b")]).toEqual([429, 429]);
  expect([await ask("GET", "/c"), await ask("GET", "/c/")]).toEqual([200, 429]);
});

test("requests that no route takes are counted too", async () => {
  await using app = await build({ limit: 1, window: "1m" }, () => {});
  expect((await app.inject("/nowhere")).statusCode).toBe(404);
  expect((await app.inject("/nowhere")).statusCode).toBe(429);
});

test("a later hook sees what earlier ones found out", async () => {
  const limits: RateLimitPluginOptions = {
    limit: 1,
    window: "1m",
    key: ["user"],
    hook: "preHandler",
    attributes: (request) => ({ user: (request as { user?: string }).user }),
  };
  await using app = await build(limits, (app) => {
    app.addHook("preValidation", async (request) => {
      (request as { user?: unknown }).user = request.headers["x-user"];
    });
    app.get("/", () => "ok");
  });
  const ask = async (user: string) => (await app.inject({ url: "/", headers: { "x-user": user } })).statusCode;
  expect([await ask("ann"), await ask("bob"), await ask("ann")]).toEqual([200, 200, 429]);
});

test("a route's mistake stops the start", async () => {
  const app = fastify();
  await app.register(rateLimit, { limit: 10, window: "1m" });
  expect(() => app.get("/", { config: { rateLimit: { limit: 1, window: "soon" } } }, () => "ok")).toThrow(/window/);
  await app.close();
});

test("a route that was declared before the plugin is limited all the same", async () => {
  const app = fastify();
  app.get("/early", { config: { rateLimit: { limit: 1, window: "1m" } } }, () => "ok");
  await app.register(rateLimit, { limit: 10, window: "1m" });
  expect((await app.inject("/early")).statusCode).toBe(200);
  expect((await app.inject("/early")).statusCode).toBe(429);
  await app.close();
});

test("over HTTP/2, leases end with their streams, and refunds know success from failure", async () => {
  const limiter = createLimiter({
    rules: [
      { id: "slots", key: [], algorithm: "concurrency", limit: 1 },
      { id: "three", key: [], algorithm: "fixed-window", limit: 3, window: "1d" },
    ],
  });
  const app = fastify({ http2: true });
  await app.register(rateLimit, { limiter, skipFailed: true });
  const stage = new Stage();
  app.get("/", () => "ok");
  app.get("/stream", (_request, reply) => reply.send(Readable.from(stage.parts())));
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const session = connect(url);
  const remaining = async (rule: string) =>
    (await limiter.peek({}, { cost: 0 })).checks.find((check) => check.rule === rule)!.remaining;

  const finished = session.request({ ":path": "/" });
  expect((await finished.toArray()).join("")).toBe("ok");
  await vi.waitFor(async () => expect([await remaining("slots"), await remaining("three")]).toEqual([1, 2]));

  const aborted = session.request({ ":path": "/stream" });
  await once(aborted, "data");
  expect([await remaining("slots"), await remaining("three")]).toEqual([0, 1]);
  aborted.close(constants.NGHTTP2_CANCEL);
  await vi.waitFor(async () => expect([await remaining("slots"), await remaining("three")]).toEqual([1, 2]));

  stage.finish();
  session.close();
  await app.close();
});

test.each([
  ["an unknown option", { max: 5 }, /max: no such option; it is called limit here/],
  ["a rule with a mistake", { limit: -1, window: "1m" }, /limit/],
  ["a hook that is none", { limit: 1, window: "1m", hook: "never" }, /hook: expected one of/],
])("%s rejects register, and the process goes on", async (_name, options, message) => {
  const app = fastify();
  await expect(async () => await app.register(rateLimit, options as RateLimitPluginOptions)).rejects.toThrow(message);
  await app.close();
});

test("createRateLimit gives a check for handlers: every call counts, by limits of its own or by the plugin's", async () => {
  await using app = await build({ limit: 4, window: "1m" }, (app) => {
    const own = app.createRateLimit({
      limit: 2,
      window: "1h",
      name: "codes",
      key: ["user"],
      attributes: () => ({ user: "a" }),
    });
    const plugins = app.createRateLimit();
    app.get("/own", async (request) =>
      [await own(request), await own(request), await own(request)].map((one) => one?.allowed),
    );
    app.get("/plugins", async (request) => (await plugins(request))?.remaining);
  });
  const answer = await app.inject("/own");
  expect(answer.json()).toEqual([true, true, false]);
  // The route itself was counted by the plugin, and the response tells of that alone.
  expect(answer.headers.ratelimit).toBe('"4-per-1m";r=3;t=60');
  expect((await app.inject("/plugins")).json()).toBe(1);
});

test("with throwRefusals a refusal reaches setErrorHandler, with its decision; without a handler it is a 429", async () => {
  const seen: unknown[] = [];
  await using app = await build({ limit: 1, window: "1m", throwRefusals: true }, (app) => {
    app.setErrorHandler((error, _request, reply) => {
      seen.push(error);
      return reply.send({ mine: true });
    });
    app.get("/", () => "ok");
  });
  await app.inject("/");
  const refused = await app.inject("/");
  expect(refused.statusCode).toBe(429);
  expect(refused.json()).toEqual({ mine: true });
  expect(refused.headers["retry-after"]).toBe("60");
  expect(seen[0]).toBeInstanceOf(RateLimitError);
  expect(seen[0]).toMatchObject({ code: "SLUICE_RATE_LIMITED", statusCode: 429, decision: { rule: "1-per-1m" } });

  await using plain = await build({ limit: 1, window: "1m", throwRefusals: true }, (app) => app.get("/", () => "ok"));
  await plain.inject("/");
  expect((await plain.inject("/")).json()).toMatchObject({ statusCode: 429, code: "SLUICE_RATE_LIMITED" });
});

test("a limit may be a function of the request: numbers share the counter, and what is no limit is an error", async () => {
  const limits: RateLimitPluginOptions = { limit: async ({ headers }) => Number(headers["x-plan"] ?? 2), window: "1m" };
  await using app = await build(limits, (app) => {
    app.get("/", () => "ok");
    app.get("/dear", { config: { rateLimit: { cost: 2 } } }, () => "ok");
  });
  const ask = async (plan: string, path = "/") => {
    const { statusCode, headers } = await app.inject({ url: path, headers: { "x-plan": plan } });
    return [statusCode, headers.ratelimit];
  };
  expect(await ask("2")).toEqual([200, '"by-request-per-1m";r=1;t=60']);
  expect(await ask("2")).toEqual([200, '"by-request-per-1m";r=0;t=60']);
  expect((await ask("2"))[0]).toBe(429);
  expect(await ask("5")).toEqual([200, '"by-request-per-1m";r=2;t=60']);
  expect((await ask("nonsense"))[0]).toBe(500);
  expect((await ask("-1"))[0]).toBe(500);
  expect((await ask("0"))[0]).toBe(429);
  for (let plan = 100; plan < 197; plan++) expect((await ask(String(plan)))[0]).toBe(200);
  expect((await ask("1000"))[0]).toBe(500);
  expect((await ask("5"))[0]).toBe(429);
  await expect(build({ limit: () => 5, window: "soon" as never }, () => {})).rejects.toThrow(/window/);
});
