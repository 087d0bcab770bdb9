/**
 * The server of `overload-real.mjs`, a process of its own: Express, a guard, and behind it places that work for as long as the scenario
 * says, with a queue before them (timers, as a database's pool would be for this process).
 *   node bench/overload-server.mjs SCENARIO GUARD MEAN_MS    (forked: reports its port, begins on a message, reports its use at the end)
 */
import express from "express";
import { rateLimit } from "sluice/express";
import { randomOf, scenarios, Traffic } from "./overload-model.mjs";
import { envoyGradient, gradient2, staticLimit } from "./overload-peers.mjs";

const [, , scenarioName, guardName, meanText] = process.argv;
const scenario = scenarios.find(({ name }) => name === scenarioName);
const traffic = new Traffic(scenario, randomOf(11), Number(meanText));

let beganMs = Number.POSITIVE_INFINITY;
let busy = 0;
const waiting = [];

function startNext() {
  if (busy >= scenario.places || waiting.length === 0) return;
  busy++;
  const done = waiting.shift();
  setTimeout(
    () => {
      busy--;
      done();
      startNext();
    },
    traffic.serviceMs(Math.max(0, performance.now() - beganMs)),
  );
}

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
app.get("/", async (_req, res) => {
  await new Promise((resolve) => {
    waiting.push(resolve);
    startNext();
  });
  res.end("done");
});
const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));

let before = performance.eventLoopUtilization();
process.on("message", (message) => {
  if (message === "begin") {
    beganMs = performance.now();
    before = performance.eventLoopUtilization();
    return;
  }
  process.send({ busy: performance.eventLoopUtilization(before).utilization, limits });
});
/** By second, where they are estimated by Sluice. */
const limits = [];
setInterval(() => {
  const limit = guard?.limiter?.sheddingStats()[0]?.limit;
  if (limit !== undefined) limits.push(limit);
}, 1_000);
process.once("disconnect", () => process.exit());
