/**
 * What the Express adapter costs a request, against express-rate-limit, each with its own memory store, in one run.
 *
 *   npm run build && node bench/express-overhead.mjs [--quick] [--json FILE]
 *
 * Real Express, real IncomingMessage and ServerResponse, no sockets: the kernel's share would hide the difference. The overhead is the time
 * of a request through the application with the middleware minus that without any. Applications take turns in short slices, each round
 * in another order, so that a noisy machine hurts all of them alike; of the slices of each, the lower quartile counts, because what
 * disturbs a slice only ever makes it slower. Clients come from 1000 addresses.
 */
import { writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { rateLimit as sluice } from "sluice/express";

const quick = process.argv.includes("--quick");
const jsonAt = process.argv.indexOf("--json");
const SLICES = quick ? 40 : 300;
const REQUESTS_PER_SLICE = 500;
const CLIENTS = 1_000;
/** More than a client asks for in this run: everything passes. */
const LIMIT = 1_000;

const sockets = Array.from({ length: CLIENTS }, (_, i) => {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: `10.0.${i >> 8}.${i & 255}` });
  return socket;
});

/** @param {import("express").RequestHandler} [middleware] */
function application(middleware) {
  const app = express();
  app.disable("x-powered-by");
  if (middleware !== undefined) app.use(middleware);
  app.get("/", (_req, res) => {
    res.statusCode = 204;
    done(res);
  });
  return app;
}

/** @type {(res: import("express").Response) => void} */
let done = () => {};

/** @param {import("express").Express} app */
async function slice(app) {
  // Processor time rather than the clock's: on a shared machine the clock measures the neighbours.
  const before = process.cpuUsage();
  for (let i = 0; i < REQUESTS_PER_SLICE; i++) {
    const req = new IncomingMessage(sockets[i % CLIENTS]);
    req.method = "GET";
    req.url = "/";
    req.headers = { host: "localhost" };
    const res = new ServerResponse(req);
    await new Promise((resolve) => {
      done = resolve;
      app(req, res);
    });
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUESTS_PER_SLICE;
}

/** @param {number[]} values */
function lowerQuartile(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 2];
}

const apps = {
  bare: application(),
  "sluice, draft-11 (its default)": application(sluice({ limit: LIMIT, window: "1m" })),
  "sluice, draft-7": application(sluice({ limit: LIMIT, window: "1m", headers: "draft-7" })),
  "sluice, legacy": application(sluice({ limit: LIMIT, window: "1m", headers: "legacy" })),
  "sluice, no fields": application(sluice({ limit: LIMIT, window: "1m", headers: false })),
  "express-rate-limit, legacy (its default)": application(expressRateLimit({ limit: LIMIT, windowMs: 60_000 })),
  "express-rate-limit, draft-7": application(
    expressRateLimit({ limit: LIMIT, windowMs: 60_000, legacyHeaders: false, standardHeaders: "draft-7" }),
  ),
  "express-rate-limit, draft-8": application(
    expressRateLimit({ limit: LIMIT, windowMs: 60_000, legacyHeaders: false, standardHeaders: "draft-8" }),
  ),
  "express-rate-limit, no fields": application(
    expressRateLimit({ limit: LIMIT, windowMs: 60_000, legacyHeaders: false }),
  ),
};

/** @type {Record<string, number[]>} */
const times = Object.fromEntries(Object.keys(apps).map((name) => [name, []]));
const WARM_UP = 20;
for (let i = -WARM_UP; i < SLICES; i++) {
  const order = Object.entries(apps).sort(() => Math.random() - 0.5);
  for (const [name, app] of order) {
    const tookUs = await slice(app);
    if (i >= 0) times[name].push(tookUs);
  }
}

const bare = lowerQuartile(times.bare);
const overheadUs = Object.fromEntries(
  Object.keys(apps)
    .slice(1)
    .map((name) => [name, lowerQuartile(times[name]) - bare]),
);
const ratios = {
  "defaults against defaults":
    overheadUs["sluice, draft-11 (its default)"] / overheadUs["express-rate-limit, legacy (its default)"],
  "current draft against draft-8":
    overheadUs["sluice, draft-11 (its default)"] / overheadUs["express-rate-limit, draft-8"],
  "draft-7 against draft-7": overheadUs["sluice, draft-7"] / overheadUs["express-rate-limit, draft-7"],
  "legacy against legacy": overheadUs["sluice, legacy"] / overheadUs["express-rate-limit, legacy (its default)"],
  "no fields against no fields": overheadUs["sluice, no fields"] / overheadUs["express-rate-limit, no fields"],
};

console.log(`bare Express: ${bare.toFixed(2)} us a request; overhead of each middleware on top:`);
for (const [name, us] of Object.entries(overheadUs))
  console.log(`  ${name.padEnd(42)} ${us.toFixed(2).padStart(6)} us`);
console.log("sluice / express-rate-limit (below 1: cheaper):");
for (const [name, ratio] of Object.entries(ratios)) console.log(`  ${name.padEnd(42)} ${ratio.toFixed(2).padStart(6)}`);
if (jsonAt !== -1)
  writeFileSync(process.argv[jsonAt + 1], `${JSON.stringify({ bareUs: bare, overheadUs, ratios }, null, 2)}\n`);
