/**
 * Servers of Envoy's rate limit service side by side: requests a second, the server's own processor time for a request, and latency.
 *
 *   npm run build && node bench/rls.mjs [--quick] [--peer NAME=HOST:PORT,PID]...
 *
 * A peer is another RLS server that you started, with its process id. It is asked for domain `bench` and one entry, `user` (a limit that
 * is never reached) or `visitor` (1 an hour: 95 % refused). docs/performance.md says how peers are set up alike.
 * Sluice runs as users run it: the command, monitoring on.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { loadFrames } from "./grpc-load.mjs";
import { interleaved } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { printSection } from "./report.mjs";

const PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const USERS = 10_000;
const REQUESTS_A_VISITOR = 20;
const TICKS_A_SECOND = 100;
const BASE = "sluice, Redis";
const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));

const rules = [
  { id: "users", key: ["user"], algorithm: "fixed-window", limit: 1_000_000, window: "1h" },
  { id: "visitors", key: ["visitor"], algorithm: "fixed-window", limit: 1, window: "1h" },
];

/** By hand, from the published field numbers: domain = 1, descriptors = 2 { entries = 1 { key = 1, value = 2 } }. */
function messageOf(key, value) {
  const field = (number, content) => {
    const bytes = Buffer.from(content);
    return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  };
  const entry = Buffer.concat([field(1, key), field(2, value)]);
  const message = Buffer.concat([field(1, "bench"), field(2, field(1, entry))]);
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame, message]);
}

/** User and system time of a process, all its threads, in microseconds. */
function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1e6;
}

async function startSluice(flags) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const file = join(folder, "rules.json");
  writeFileSync(file, JSON.stringify({ rules }));
  const args = [bin, "serve", "--port", "0", "--grpc-port", "0", "--rules", file, "--data-folder", folder, ...flags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  for await (const chunk of child.stdout) {
    output += chunk;
    if (/gRPC +\S+:\d+/.test(output)) break;
  }
  child.stdout.resume();
  const [, host, port] = /gRPC +(\S+):(\d+)/.exec(output);
  return {
    host,
    port: Number(port),
    pid: child.pid,
    async stop() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function parsePeer(text) {
  const [, name, host, port, pid] = /^([^=]+)=([^:]+):(\d+),(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new Error(`--peer: expected NAME=HOST:PORT,PID, got ${JSON.stringify(text)}`);
  return [name, { host, port: Number(port), pid: Number(pid) }];
}

/** Each run of refused traffic has visitors of its own. */
let rounds = 0;
const visitors = (count) => {
  const round = rounds++;
  const names = Array.from({ length: Math.ceil(count / REQUESTS_A_VISITOR) }, (_, i) => `v${round}-${i}`);
  return names.map((name) => messageOf("visitor", name));
};
const users = Array.from({ length: USERS }, (_, i) => messageOf("user", `user-${i}`));

const workloads = [
  { title: "gRPC, 1 connection x 64 in flight", connections: 1, inFlight: 64, messages: () => users },
  { title: "gRPC, 64 connections x 1 in flight", connections: 64, inFlight: 64, messages: () => users },
  { title: "gRPC, 64 x 1, 95 % refused", connections: 64, inFlight: 64, messages: visitors },
  { title: "gRPC, one request at a time", connections: 1, inFlight: 1, messages: () => users, share: 0.1 },
];

async function run({ quick, repetitions, peers }) {
  const redis = await startRedis();
  const onRedis = await startSluice(["--store", redis.url, "--store-deadline", "2s"]);
  const inMemory = await startSluice([]);
  const servers = { [BASE]: onRedis, "sluice, memory": inMemory, ...Object.fromEntries(peers) };
  try {
    for (const { title, connections, inFlight, messages, share = 1 } of workloads) {
      const count = Math.round((quick ? 15_000 : 60_000) * share);
      const contestant =
        ({ host, port, pid }) =>
        async () => {
          const before = cpuUsOf(pid);
          const load = { host, port, count, connections, inFlight, path: PATH, messages: messages(count) };
          const figures = await loadFrames(load);
          return { ...figures, nodeUs: (cpuUsOf(pid) - before) / count };
        };
      const contestants = Object.fromEntries(Object.entries(servers).map(([name, at]) => [name, contestant(at)]));
      printSection({ title, base: BASE, results: await interleaved(contestants, repetitions) });
    }
  } finally {
    await Promise.all([onRedis.stop(), inMemory.stop()]);
    await redis.stop();
  }
}

const { values } = parseArgs({
  options: { quick: { type: "boolean", default: false }, peer: { type: "string", multiple: true, default: [] } },
});
await run({ quick: values.quick, repetitions: values.quick ? 3 : 5, peers: values.peer.map(parsePeer) });
