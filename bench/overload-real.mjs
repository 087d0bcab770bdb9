/**
 * A real Node server under real load: Express behind `sluice/express`, 8 workers of about 100 ms (a pool of timers, as a database would
 * be), callers that do not wait for each other. The server is a process of its own: this file, forked.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";

const PLACES = 8;
const MEAN_MS = 100;
const CAPACITY_PER_S = (1000 * PLACES) / MEAN_MS;
const DEADLINE_MS = 1_000;
const rule = {
  id: "keep-serving",
  key: [],
  algorithm: "load-shedding",
  signal: "inflight",
  limit: "auto",
  class: { attribute: "criticality", default: "normal" },
};
const MIX = [
  ["critical", 0.05],
  ["important", 0.15],
  ["normal", 0.4],
  ["sheddable", 0.4],
];

export async function realOverload({ quick }) {
  const seconds = quick ? 12 : 30;
  const results = [];
  for (const [name, rules, load] of [
    ["idle (a tenth of capacity)", [rule], 0.1],
    ["4x, no limiter", [], 4],
    ["4x, sluice", [rule], 4],
  ]) {
    const server = fork(fileURLToPath(import.meta.url), ["serve", JSON.stringify(rules)]);
    const [{ port }] = await once(server, "message");
    results.push({ name, ...(await offer({ port, load, seconds })) });
    server.kill();
    await once(server, "exit");
  }
  const idleP99 = results[0].p99;
  return results.map((result) => ({ ...result, p99: result.p99 / idleP99 }));
}

async function offer({ port, load, seconds }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 2_000 });
  const warmMs = seconds * 250;
  const startMs = performance.now();
  const counts = { sent: 0, served: 0, critical: 0, criticalSent: 0 };
  const latencies = [];
  const pending = new Set();
  for (let i = 0; ; i++) {
    const dueMs = startMs + (i * 1000) / (CAPACITY_PER_S * load);
    const aheadMs = dueMs - performance.now();
    if (dueMs - startMs > seconds * 1000) break;
    if (aheadMs > 1) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    const isCounted = performance.now() - startMs > warmMs;
    const criticality = classOf();
    const sentMs = performance.now();
    if (isCounted) counts.sent++;
    if (isCounted && criticality === "critical") counts.criticalSent++;
    const asked = ask({ port, agent, criticality, user: i % 500 }).then((status) => {
      const latencyMs = performance.now() - sentMs;
      pending.delete(asked);
      if (!isCounted || status !== 200) return;
      latencies.push(latencyMs);
      if (latencyMs > DEADLINE_MS) return;
      counts.served++;
      if (criticality === "critical") counts.critical++;
    });
    pending.add(asked);
  }
  await Promise.race([Promise.all(pending), new Promise((resolve) => setTimeout(resolve, 3_000))]);
  agent.destroy();
  const possible = CAPACITY_PER_S * seconds * 0.75;
  latencies.sort((a, b) => a - b);
  return {
    offered: counts.sent / possible,
    served: counts.served / possible,
    critical: counts.critical / Math.max(1, counts.criticalSent),
    p99: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
  };
}

function classOf() {
  let left = Math.random();
  for (const [name, share] of MIX) {
    left -= share;
    if (left < 0) return name;
  }
  return "sheddable";
}

function ask({ port, agent, criticality, user }) {
  return new Promise((resolve) => {
    const headers = { "x-criticality": criticality, "x-user": `u${user}` };
    const call = request({ host: "127.0.0.1", port, agent, headers }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode));
      response.once("error", () => resolve(0));
    });
    call.once("error", () => resolve(0));
    call.end();
  });
}

/** Eight workers and a queue, as a pool of connections is. */
function createPool() {
  let busy = 0;
  const waiting = [];
  const next = () => {
    if (busy >= PLACES || waiting.length === 0) return;
    busy++;
    const done = waiting.shift();
    // Between half and one and a half of the mean.
    setTimeout(
      () => {
        busy--;
        done();
        next();
      },
      MEAN_MS * (0.5 + Math.random()),
    );
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      next();
    });
}

if (process.argv[2] === "serve" && process.argv[1] === fileURLToPath(import.meta.url)) {
  const { default: express } = await import("express");
  const { rateLimit } = await import("sluice/express");
  const rules = JSON.parse(process.argv[3]);
  const work = createPool();
  const app = express();
  if (rules.length > 0) {
    const attributes = (req) => ({ criticality: req.get("x-criticality"), user: req.get("x-user") });
    app.use(rateLimit({ rules, attributes, headers: false }));
  }
  app.get("/", async (_req, res) => {
    await work();
    res.end("done");
  });
  const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
}
