/**
 * The Express applications that the middleware benchmarks compare: bare, with Sluice's adapter, with express-rate-limit, each with
 * its own memory store. Real Express, real IncomingMessage and ServerResponse, no sockets: the kernel's share would hide the difference.
 * Clients come from 1000 addresses, and everything passes.
 */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { rateLimit as sluice } from "sluice/express";

const CLIENTS = 1_000;
/** More than a client asks for in a run. */
const LIMIT = 1_000;

const sockets = Array.from({ length: CLIENTS }, (_, i) => {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: `10.0.${i >> 8}.${i & 255}` });
  return socket;
});

/** @type {(res: import("express").Response) => void} */
let done = () => {};

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

/**
 * @param {import("express").Express} app
 * @param {number} i which client asks
 */
export async function requestThrough(app, i) {
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

export const apps = {
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
