/** What only Express has: its own "trust proxy", and several middlewares on one request. */
import { createServer } from "node:http";
import express from "express";
import { createLimiter, type Rule } from "sluice";
import { rateLimit } from "sluice/express";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { listening, Stage } from "./apps/served-app.js";
import { rateLimitHeaders } from "./read-fields.js";

const perIp: Rule = { id: "per-ip", key: ["ip"], algorithm: "rolling-window", limit: 1, window: "1m" };
const limiterOf = (...rules: Rule[]) => createLimiter({ clock: virtualClock(), rules });

function serve(app: express.Express) {
  return listening(createServer(app), new Stage());
}

test("the application's own trust proxy says who may forward an address", async () => {
  const app = express();
  app.set("trust proxy", 1);
  app.use(rateLimit({ limiter: limiterOf(perIp) }));
  app.get("/", (_req, res) => void res.send("ok"));
  await using served = await serve(app);
  const ask = async (forwarded: string) =>
    (await fetch(served.url, { headers: { "x-forwarded-for": forwarded } })).status;
  expect(await ask("203.0.113.1")).toBe(200);
  expect(await ask("203.0.113.2")).toBe(200);
  expect(await ask("198.51.100.9, 203.0.113.1")).toBe(429);
});

test("a limit in one line may block, and may let requests wait", async () => {
  const app = express();
  app.use("/login", rateLimit({ limit: 1, window: "1s", blockFor: "1h" }));
  app.use("/paced", rateLimit({ limit: 10, window: "1s", algorithm: "gcra", burst: 1, maxWait: "1s" }));
  app.get(["/login", "/paced"], (_req, res) => void res.send("ok"));
  await using served = await serve(app);
  const ask = (path: string) => fetch(`${served.url}${path}`);
  expect((await ask("/login")).status).toBe(200);
  const blocked = await ask("/login");
  expect([blocked.status, blocked.headers.get("retry-after")]).toEqual([429, "3600"]);
  const sinceMs = performance.now();
  expect(await Promise.all([ask("/paced"), ask("/paced")]).then((all) => all.map(({ status }) => status))).toEqual([
    200, 200,
  ]);
  expect(performance.now() - sinceMs).toBeGreaterThan(80);
});

test("limits of two middlewares on one request are told together, the tightest or the refusing one in RateLimit", async () => {
  const app = express();
  app.use(rateLimit({ limiter: limiterOf({ ...perIp, id: "outer", limit: 10 }) }));
  app.use(rateLimit({ limiter: limiterOf({ ...perIp, id: "inner", limit: 2 }) }));
  app.get("/", (_req, res) => void res.send("ok"));
  await using served = await serve(app);
  const policy = '"outer";q=10;w=60, "inner";q=2;w=60';
  expect(rateLimitHeaders((await fetch(served.url)).headers)).toEqual({
    "ratelimit-policy": policy,
    ratelimit: '"inner";r=1;t=60',
  });
  await fetch(served.url);
  expect(rateLimitHeaders((await fetch(served.url)).headers)).toEqual({
    "ratelimit-policy": policy,
    ratelimit: '"inner";r=0;t=60',
    "retry-after": "60",
  });
});

test("a limiter shared by two middlewares counts again where they ask something else of it", async () => {
  const limiter = limiterOf({ ...perIp, limit: 10 }, { ...perIp, id: "uploads", key: ["action"], limit: 5 });
  const app = express();
  app.use(rateLimit({ limiter }));
  app.use("/upload", rateLimit({ limiter, attributes: () => ({ action: "upload" }) }));
  app.use((_req, res) => void res.send("ok"));
  await using served = await serve(app);
  await fetch(`${served.url}/upload`);
  expect((await limiter.peek({ action: "upload" }, { cost: 0 })).remaining).toBe(4);
});

test("an absolute request target and escaped letters do not slip past a rule for a path", async () => {
  const limiter = limiterOf({ ...perIp, key: [], match: { path: "/login" }, limit: 10 });
  const app = express();
  app.use(rateLimit({ limiter }));
  app.use((_req, res) => void res.send("ok"));
  await using served = await serve(app);
  const { request } = await import("node:http");
  const ask = (path: string) =>
    new Promise<unknown>((resolve, reject) => {
      request(served.url, { path }, (response) => {
        response.resume();
        resolve(response.headers.ratelimit);
      })
        .on("error", reject)
        .end();
    });
  expect(await ask("/login")).toBe('"per-ip";r=9;t=60');
  expect(await ask("http://elsewhere.example/login?x=1")).toBe('"per-ip";r=8;t=60');
  expect(await ask("/%6cogin#part")).toBe('"per-ip";r=7;t=60');
  expect(await ask("/logins")).toBeUndefined();
});

test("a middleware that is told the wrong things says so when it is made", () => {
  expect(() => rateLimit({} as never)).toThrow("expected exactly one of limiter, rules and limit, got none of them");
  expect(() => rateLimit({ limit: 1, window: "1m", rules: [perIp] })).toThrow("got rules and limit");
  expect(() => rateLimit({ limit: 1, windowMs: 1000 } as never)).toThrow(
    "windowMs: no such option; it is called window here",
  );
  expect(() => rateLimit({ limit: 1, window: "1m", limits: 3 } as never)).toThrow(
    /^limits: no such option; known are /,
  );
  expect(() => rateLimit({ limit: -1, window: "1m" })).toThrow(/limit/);
  expect(() => rateLimit({ limit: 1, window: "1 minute" })).toThrow(/window: expected a duration/);
  expect(() => rateLimit({ limit: 1, window: "1m", headers: "draft-5" as never })).toThrow(/^headers: expected one of/);
  expect(() => rateLimit({ limit: 1, window: "1m", trustProxy: "10.0.0.0/99" })).toThrow(/^trustProxy: expected false/);
  expect(() => rateLimit({ limit: 1, window: "1m", ipv6Prefix: 0 })).toThrow(/^ipv6Prefix: expected/);
  expect(() => rateLimit({ limiter: limiterOf(perIp), store: {} as never })).toThrow(/^store: the limiter has its own/);
});
