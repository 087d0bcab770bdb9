/**
 * What the Express adapter costs a request, against express-rate-limit, each with its own memory store, in one run.
 *
 *   npm run build && node bench/express-overhead.mjs [--quick] [--json FILE]
 *
 * Real Express, real IncomingMessage and ServerResponse, no sockets: the kernel's share would hide the difference. The overhead is the time
 * of a request through the application with the middleware minus that without any. Applications take turns in short slices, each round
 * in another order, so that a noisy machine hurts all of them alike; of the slices of each, the lower quartile counts, because what
 * disturbs a slice only ever makes it slower; medians are shown beside it. Clients come from 1000 addresses.
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

/**
 * @param {number[]} values
 * @param {number} share
 */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)];
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

/** @param {number} share */
function compare(share) {
  const bareUs = quantile(times.bare, share);
  const names = Object.keys(apps).slice(1);
  const overheadUs = Object.fromEntries(names.map((name) => [name, quantile(times[name], share) - bareUs]));
  const ratios = Object.fromEntries(
    Object.entries(pairs).map(([name, [ours, theirs]]) => [name, overheadUs[ours] / overheadUs[theirs]]),
  );
  return { bareUs, overheadUs, ratios };
}

const pairs = {
  "defaults against defaults": ["sluice, draft-11 (its default)", "express-rate-limit, legacy (its default)"],
  "current draft against draft-8": ["sluice, draft-11 (its default)", "express-rate-limit, draft-8"],
  "draft-7 against draft-7": ["sluice, draft-7", "express-rate-limit, draft-7"],
  "legacy against legacy": ["sluice, legacy", "express-rate-limit, legacy (its default)"],
  "no fields against no fields": ["sluice, no fields", "express-rate-limit, no fields"],
};
const quartile = compare(0.25);
const median = compare(0.5);

console.log(
  `bare Express: ${quartile.bareUs.toFixed(2)} us a request (median ${median.bareUs.toFixed(2)}); on top of it:`,
);
for (const [name, us] of Object.entries(quartile.overheadUs)) {
  console.log(`  ${name.padEnd(42)} ${us.toFixed(2).padStart(6)} us (median ${median.overheadUs[name].toFixed(2)})`);
}
console.log("sluice / express-rate-limit (below 1: cheaper):");
for (const [name, ratio] of Object.entries(quartile.ratios)) {
  console.log(`  ${name.padEnd(42)} ${ratio.toFixed(2).padStart(6)}    (median ${median.ratios[name].toFixed(2)})`);
}
if (jsonAt !== -1) writeFileSync(process.argv[jsonAt + 1], `${JSON.stringify({ ...quartile, median }, null, 2)}\n`);
