/**
 * A real Node server under real load: Express before 8 workers of about 200 ms (a pool of timers, as a database would be), callers that do
 * not wait for each other. The server is a process of its own: this file, forked. In the same run `sluice/express` with `limit: auto`,
 * nothing, a static limit, the published formulas of Gradient2 and Envoy, and, where it is installed, a real Envoy with its adaptive
 * concurrency filter before the bare server.
 *   node bench/overload-real.mjs [--quick]
 */
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { components } from "../scripts/system-components.mjs";
import { envoyGradient, gradient2, staticLimit } from "./overload-peers.mjs";

const PLACES = 8;
const MEAN_MS = 200;
const CAPACITY_PER_S = (1000 * PLACES) / MEAN_MS;
const DEADLINE_MS = 2_000;
/** Of a run, before anything is counted. */
const WARM_SHARE = 0.25;
const MIX = [
  ["critical", 0.05],
  ["important", 0.15],
  ["normal", 0.4],
  ["sheddable", 0.4],
];
const rule = {
  id: "keep-serving",
  key: [],
  algorithm: "load-shedding",
  signal: "inflight",
  limit: "auto",
  class: { attribute: "criticality", default: "normal" },
};

/** `slowFrom`: the share of the run after which the workers take three times as long. */
const scenarios = [
  { name: "10x", load: () => 10, slowFrom: 1 },
  { name: "4x, workers 3x slower half way", load: () => 4, slowFrom: 0.5 },
  { name: "idle, then 4x from a quarter on", load: (share) => (share < WARM_SHARE ? 0.1 : 4), slowFrom: 1 },
];
const contestants = ["none", "static", "Gradient2", "Envoy's formula", "Envoy", "sluice"];

export async function realOverload({ quick }) {
  const seconds = quick ? 12 : 20;
  const idle = await runOne({ guard: "none", scenario: { load: () => 0.1, slowFrom: 1 }, seconds });
  const results = [];
  for (const scenario of quick ? scenarios.slice(0, 1) : scenarios) {
    for (const guard of quick ? ["none", "sluice"] : contestants) {
      if (guard === "Envoy" && components.envoy.find() === undefined) continue;
      const { p99, ...found } = await runOne({ guard, scenario, seconds });
      results.push({ name: `${scenario.name}, ${guard}`, ...found, p99: p99 / idle.p99 });
    }
  }
  return results;
}

async function runOne({ guard, scenario, seconds }) {
  const inServer = guard === "Envoy" ? "none" : guard;
  const slowAfterMs = scenario.slowFrom * seconds * 1000;
  const server = fork(fileURLToPath(import.meta.url), ["serve", inServer, String(slowAfterMs)]);
  const [{ port }] = await once(server, "message");
  const envoy = guard === "Envoy" ? await startEnvoy(port) : undefined;
  try {
    server.send("begin");
    return await offer({ port: envoy?.port ?? port, seconds, ...scenario });
  } finally {
    await envoy?.stop();
    server.kill();
    await once(server, "exit");
  }
}

/** Envoy 1.3x with the filter's defaults, in front of the server. */
async function startEnvoy(upstreamPort) {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-envoy-"));
  const address = (at) => ({ socket_address: { address: "127.0.0.1", port_value: at } });
  const type = (name) => `type.googleapis.com/envoy.extensions.filters.${name}`;
  const adaptive = {
    "@type": type("http.adaptive_concurrency.v3.AdaptiveConcurrency"),
    gradient_controller_config: {
      sample_aggregate_percentile: { value: 50 },
      concurrency_limit_params: { concurrency_update_interval: "0.1s" },
      min_rtt_calc_params: { interval: "60s", request_count: 50 },
    },
  };
  const manager = {
    "@type": type("network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "in",
    route_config: {
      virtual_hosts: [{ name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }] }],
    },
    http_filters: [
      { name: "adaptive", typed_config: adaptive },
      { name: "router", typed_config: { "@type": type("http.router.v3.Router") } },
    ],
  };
  const many = { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 };
  const endpoint = { endpoint: { address: address(upstreamPort) } };
  const config = {
    static_resources: {
      listeners: [
        {
          name: "in",
          address: address(port),
          filter_chains: [{ filters: [{ name: "http", typed_config: manager }] }],
        },
      ],
      clusters: [
        {
          name: "app",
          type: "STATIC",
          circuit_breakers: { thresholds: [many] },
          load_assignment: { cluster_name: "app", endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
    },
  };
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(components.envoy.find(), ["-c", file, "--use-dynamic-base-id", "--concurrency", "1"], {
    stdio: "ignore",
  });
  while (!(await accepts(port))) await new Promise((resolve) => setTimeout(resolve, 50));
  const stop = async () => {
    child.kill();
    await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  };
  return { port, stop };
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

async function freePort() {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function offer({ port, load, seconds, slowFrom }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 2_000 });
  const lastMs = seconds * 1000;
  const startMs = performance.now();
  const counts = { sent: 0, served: 0, critical: 0, criticalSent: 0 };
  const latencies = [];
  const pending = new Set();
  for (let i = 0, dueMs = startMs; ; i++) {
    dueMs += 1000 / (CAPACITY_PER_S * load((dueMs - startMs) / lastMs));
    const aheadMs = dueMs - performance.now();
    if (dueMs - startMs > lastMs) break;
    if (aheadMs > 1) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    const isCounted = performance.now() - startMs > WARM_SHARE * lastMs;
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
  const slowShare = 1 - Math.max(WARM_SHARE, slowFrom);
  const possible = CAPACITY_PER_S * seconds * (1 - WARM_SHARE - slowShare + slowShare / 3);
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
function createPool(slownessOf) {
  let busy = 0;
  const waiting = [];
  const next = () => {
    if (busy >= PLACES || waiting.length === 0) return;
    busy++;
    const done = waiting.shift();
    // Between half and one and a half of the mean.
    const workMs = MEAN_MS * slownessOf() * (0.5 + Math.random());
    setTimeout(() => {
      busy--;
      done();
      next();
    }, workMs);
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      next();
    });
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

async function guardOf(name) {
  if (name === "static") return formulaGuard(staticLimit(PLACES));
  if (name === "Gradient2") return formulaGuard(gradient2());
  if (name === "Envoy's formula") return formulaGuard(envoyGradient(Math.random));
  const { rateLimit } = await import("sluice/express");
  const attributes = (req) => ({ criticality: req.get("x-criticality"), user: req.get("x-user") });
  return rateLimit({ rules: [rule], attributes, headers: false });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , kind, guard, slowAfterMs] = process.argv;
  if (kind === "serve") {
    const { default: express } = await import("express");
    let beganMs = Number.POSITIVE_INFINITY;
    process.once("message", () => {
      beganMs = performance.now();
    });
    const work = createPool(() => (performance.now() - beganMs > Number(slowAfterMs) ? 3 : 1));
    const app = express();
    if (guard !== "none") app.use(await guardOf(guard));
    app.get("/", async (_req, res) => {
      await work();
      res.end("done");
    });
    const server = app.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
    process.once("disconnect", () => process.exit());
  } else printReal(await realOverload({ quick: kind === "--quick" }));
}

export function printReal(results) {
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  console.log("\nOverload of a real Node server (8 workers of about 200 ms behind Express), open loop");
  for (const { name, offered, served, critical, p99 } of results) {
    console.log(
      `  ${name.padEnd(52)}offered ${percent(offered)}, served ${percent(served)} of capacity, critical ${percent(critical)}, p99 ${p99.toFixed(1)} x idle`,
    );
  }
}
