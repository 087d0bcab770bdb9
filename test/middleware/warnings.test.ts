/** That each framework's own setting of trusted proxies is understood, and its classic mistakes are warned of, once. */

import { createServer, type RequestListener } from "node:http";
import express from "express";
import fastify from "fastify";
import Koa from "koa";
import { beforeEach, expect, test, vi } from "vitest";
import { listening, Stage } from "./apps/served-app.js";

let warnings: string[];

beforeEach(() => {
  // A warning is told once per process: each test loads the middlewares anew.
  vi.resetModules();
  warnings = [];
  vi.spyOn(process, "emitWarning").mockImplementation((_message, options) => {
    warnings.push((options as { code: string }).code);
  });
  return () => vi.restoreAllMocks();
});

/** The statuses of three requests from one peer that claim to come from three addresses, under a limit of 1 by address. */
async function askAsThree(listener: RequestListener): Promise<number[]> {
  await using served = await listening(createServer(listener), new Stage());
  const statuses: number[] = [];
  for (const forwarded of ["203.0.113.1", "203.0.113.2", "198.51.100.7, 203.0.113.1"]) {
    statuses.push((await fetch(served.url, { headers: { "x-forwarded-for": forwarded } })).status);
  }
  return statuses;
}

const limit = { limit: 1, window: "1m" };

test.each([
  [false, [200, 429, 429], ["SLUICE_FORWARDED_WITHOUT_TRUST"]],
  [true, [200, 200, 200], ["SLUICE_TRUSTS_EVERYBODY"]],
  ["loopback", [200, 200, 429], []],
  [1, [200, 200, 429], []],
])("Express with trust proxy %j", async (setting, statuses, expected) => {
  const { rateLimit } = await import("sluice/express");
  const app = express();
  app.set("trust proxy", setting);
  app.use(rateLimit(limit));
  app.use((_req, res) => void res.send("ok"));
  expect(await askAsThree(app)).toEqual(statuses);
  expect(warnings).toEqual(expected);
});

test.each([
  [false, [200, 429, 429], ["SLUICE_FORWARDED_WITHOUT_TRUST"]],
  [true, [200, 200, 200], ["SLUICE_TRUSTS_EVERYBODY"]],
  ["loopback", [200, 200, 429], []],
])("Fastify with trustProxy %j", async (trustProxy, statuses, expected) => {
  const { rateLimit } = await import("sluice/fastify");
  const app = fastify({ trustProxy });
  await app.register(rateLimit, limit);
  app.get("/", () => "ok");
  await app.ready();
  expect(await askAsThree((req, res) => app.routing(req, res))).toEqual(statuses);
  expect(warnings).toEqual(expected);
  await app.close();
});

test.each([
  [{ proxy: false }, [200, 429, 429], ["SLUICE_FORWARDED_WITHOUT_TRUST"]],
  [{ proxy: true }, [200, 200, 200], ["SLUICE_TRUSTS_EVERYBODY"]],
  [{ proxy: true, maxIpsCount: 1 }, [200, 200, 429], []],
])("Koa with %j", async (settings, statuses, expected) => {
  const { rateLimit } = await import("sluice/koa");
  const app = new Koa(settings);
  app.use(rateLimit(limit));
  app.use((ctx) => {
    ctx.body = "ok";
  });
  expect(await askAsThree(app.callback())).toEqual(statuses);
  expect(warnings).toEqual(expected);
});

test("Koa's proxyIpHeader names the header that addresses are taken from, whether X-Forwarded-For comes or not", async () => {
  const { rateLimit } = await import("sluice/koa");
  const app = new Koa({ proxy: true, proxyIpHeader: "X-Real-IP" });
  app.use(rateLimit(limit));
  app.use((ctx) => {
    ctx.body = "ok";
  });
  await using served = await listening(createServer(app.callback()), new Stage());
  const ask = async (headers: Record<string, string>) => (await fetch(served.url, { headers })).status;
  expect(await ask({ "x-real-ip": "203.0.113.1" })).toBe(200);
  expect(await ask({ "x-real-ip": "203.0.113.2" })).toBe(200);
  expect(await ask({ "x-real-ip": "203.0.113.1", "x-forwarded-for": "203.0.113.3" })).toBe(429);
  expect(warnings).toEqual([]);
});

test("a rule whose key attribute never comes is warned of once; one that comes now and then is not", async () => {
  const { rateLimit } = await import("sluice/express");
  const rules = ["usr", "user", "ip"].map((name) => ({
    id: `by-${name}`,
    key: [name],
    algorithm: "fixed-window" as const,
    limit: 1_000,
    window: "1d",
  }));
  const app = express();
  let count = 0;
  app.use(rateLimit({ rules, attributes: () => ({ user: count++ === 50 ? "ann" : undefined }) }));
  app.use((_req, res) => void res.send("ok"));
  await using served = await listening(createServer(app), new Stage());
  for (let i = 0; i < 99; i++) await fetch(served.url);
  expect(warnings).toEqual([]);
  for (let i = 0; i < 120; i++) await fetch(served.url);
  expect(warnings).toEqual(["SLUICE_ABSENT_KEY"]);
});
