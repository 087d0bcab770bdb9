/**
 * The server of `overload-real.mjs`, a process of its own: Express, a guard, and a backend behind it.
 *   node bench/overload-server.mjs SCENARIO GUARD    (forked: reports its port, begins on a message, reports what it used at the end)
 */
import express from "express";
import { rateLimit } from "sluice/express";
import { Backend } from "./overload-backend.mjs";
import { inRealTime, randomOf, scenarios, Traffic } from "./overload-model.mjs";
import { envoyGradient, gradient2, staticLimit } from "./overload-peers.mjs";

const [, , scenarioName, guardName] = process.argv;
const scenario = inRealTime(scenarios.find(({ name }) => name === scenarioName));
const backend = new Backend(scenario, new Traffic(scenario, randomOf(11), scenario.meanMs));
let beganMs = performance.now();

/** A middleware of a limiter that is published as a formula. */
function formulaGuard(limiter) {
  return (_req, res, next) => {
    const pass = limiter.admit(performance.now(), {});
    if (pass === undefined) {
      res.status(503).end();
      return;
    }
    res.once("close", () => limiter.end(pass, performance.now()));
    next();
  };
}

function guardOf(name) {
  if (name === "static") return formulaGuard(staticLimit(scenario.places));
  if (name === "static with a queue") return formulaGuard(staticLimit(Math.ceil(1.5 * scenario.places)));
  if (name === "Gradient2") return formulaGuard(gradient2());
  if (name === "Envoy's formula") return formulaGuard(envoyGradient(Math.random));
  const rule = {
    id: "keep-serving",
    key: [],
    algorithm: "load-shedding",
    signal: name === "sluice" ? ["inflight"] : ["inflight", "event-loop"],
    limit: "auto",
    class: { attribute: "criticality", default: "normal" },
    ...(scenario.tenants !== undefined && { fairBy: "tenant" }),
  };
  const attributes = (req) => ({
    criticality: req.get("x-criticality"),
    user: req.get("x-user"),
    tenant: req.get("x-tenant"),
  });
  return rateLimit({ rules: [rule], attributes, headers: false });
}

const app = express();
const guard = guardName === "none" ? undefined : guardOf(guardName);
if (guard !== undefined) app.use(guard);
app.get("/", (_req, res) => {
  backend.serve(performance.now() - beganMs, () => res.end("done"));
});
const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));

let before = performance.eventLoopUtilization();
let cpuBefore = process.cpuUsage();
process.on("message", (message) => {
  if (message === "begin") {
    beganMs = performance.now();
    before = performance.eventLoopUtilization();
    cpuBefore = process.cpuUsage();
    return;
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const { drawnMeanMs } = backend;
  const cpu = (user + system) / 1000 / (performance.now() - beganMs);
  process.send({ busy: performance.eventLoopUtilization(before).utilization, cpu, drawnMeanMs, limits });
});
/** By second, where they are estimated by Sluice. */
const limits = [];
setInterval(() => {
  const limit = guard?.limiter?.sheddingStats()[0]?.limit;
  if (limit !== undefined) limits.push(limit);
}, 1_000);
process.once("disconnect", () => process.exit());
