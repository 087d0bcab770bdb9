/**
 * Servers of Envoy's rate limit service side by side: requests a second, the server's own processor time for a request, and latency.
 *
 *   npm run build && node bench/rls.mjs [--quick] [--peer NAME=HOST:PORT,PID[,PID OF ITS REDIS]]... [--gubernator HOST:PORT,PID] [--node FILE] [--requests N]
 *
 * Gubernator has an API of its own, in which each request carries its limit; it is asked for the same counters. Any other peer is another RLS server that you started, with its process id. It is asked for domain `bench` and one entry, `user` (a limit that
 * is never reached) or `visitor` (1 an hour: 95 % refused). docs/performance.md says how peers are set up alike.
 * Sluice runs as users run it: the command, monitoring on; with --node also on another Node.
 *
 * Load, server and Redis share the machine, so requests a second tell what all three cost together; their processor times stand beside them.
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

const USERS = 10_000;
const REQUESTS_A_VISITOR = 20;
const TICKS_A_SECOND = 100;
const BASE = "sluice, Redis";
const bin = fileURLToPath(new URL("../packages/server/bin/sluice.js", import.meta.url));

/** An hour's, by the name of the entry that is counted by. */
const limits = { user: 1_000_000, visitor: 1 };
const rules = Object.entries(limits).map(([key, limit]) => ({
  ...{ id: `${key}s`, key: [key], limit },
  ...{ algorithm: "fixed-window", window: "1h" },
}));

/** A field of bytes or text, and one of a whole number. */
function field(number, content) {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

function numberField(number, value) {
  const bytes = [number << 3];
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push(left < 128 ? left : (left % 128) | 128);
    if (left < 128) return Buffer.from(bytes);
  }
}

function framed(...fields) {
  const message = Buffer.concat(fields);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** By hand, from the published field numbers. */
const apis = {
  /** domain = 1, descriptors = 2 { entries = 1 { key = 1, value = 2 } } */
  rls: {
    path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    messageOf: ({ key, value }) =>
      framed(field(1, "bench"), field(2, field(1, Buffer.concat([field(1, key), field(2, value)])))),
  },
  /** requests = 1 { name = 1, unique_key = 2, hits = 3, limit = 4, duration = 5 }, a token bucket in memory. */
  gubernator: {
    path: "/pb.gubernator.V1/GetRateLimits",
    messageOf: ({ key, value }) => {
      const numbers = [numberField(3, 1), numberField(4, limits[key]), numberField(5, 3_600_000)];
      return framed(field(1, Buffer.concat([field(1, key), field(2, value), ...numbers])));
    },
  },
};

/** User and system time of a process, all its threads, in microseconds. */
function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND) * 1e6;
}

async function startSluice(flags, node = process.execPath) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const file = join(folder, "rules.json");
  writeFileSync(file, JSON.stringify({ rules }));
  const args = [bin, "serve", "--port", "0", "--grpc-port", "0", "--rules", file, "--data-folder", folder, ...flags];
  const child = spawn(node, args, { stdio: ["ignore", "pipe", "inherit"] });
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
  const [, name, host, port, pid, redisPid] = /^([^=]+)=([^:]+):(\d+),(\d+)(?:,(\d+))?$/.exec(text) ?? [];
  if (name === undefined) throw new Error(`--peer: expected NAME=HOST:PORT,PID, got ${JSON.stringify(text)}`);
  const api = name === "gubernator" ? apis.gubernator : apis.rls;
  return [name, { host, port: Number(port), pid: Number(pid), redisPid: redisPid && Number(redisPid), api }];
}

/** Each run of refused traffic has visitors of its own. */
let rounds = 0;
const visitors = (count) => {
  const round = rounds++;
  const names = Array.from({ length: Math.ceil(count / REQUESTS_A_VISITOR) }, (_, i) => `v${round}-${i}`);
  return names.map((value) => ({ key: "visitor", value }));
};
const users = Array.from({ length: USERS }, (_, i) => ({ key: "user", value: `user-${i}` }));

const workloads = [
  { title: "gRPC, 1 connection x 64 in flight", connections: 1, inFlight: 64, counted: () => users },
  { title: "gRPC, 64 connections x 1 in flight", connections: 64, inFlight: 64, counted: () => users },
  { title: "gRPC, 64 x 1, 95 % refused", connections: 64, inFlight: 64, counted: visitors },
  { title: "gRPC, one request at a time", connections: 1, inFlight: 1, counted: () => users, share: 0.1 },
];

async function openServers({ peers, node }) {
  const redis = await startRedis();
  const redisPid = Number(/process_id:(\d+)/.exec(await redis.admin.info("server"))?.[1]);
  const onRedis = ["--store", redis.url, "--store-deadline", "2s"];
  const servers = {
    [BASE]: { ...(await startSluice(onRedis)), redisPid },
    "sluice, memory": await startSluice([]),
    ...(node && {
      "sluice, Redis, --node": { ...(await startSluice(onRedis, node)), redisPid },
      "sluice, memory, --node": await startSluice([], node),
    }),
    ...Object.fromEntries(peers),
  };
  const stop = async () => {
    await Promise.all(Object.values(servers).map((server) => server.stop?.()));
    await redis.stop();
  };
  return { servers, stop };
}

async function run({ requests, repetitions, peers, node }) {
  const { servers, stop } = await openServers({ peers, node });
  try {
    for (const { title, connections, inFlight, counted, share = 1 } of workloads) {
      const count = Math.round(requests * share);
      const contestant =
        ({ host, port, pid, redisPid, api = apis.rls }) =>
        async () => {
          const messages = counted(count).map(api.messageOf);
          const before = [cpuUsOf(pid), redisPid ? cpuUsOf(redisPid) : 0];
          const figures = await loadFrames({ host, port, count, connections, inFlight, path: api.path, messages });
          const serverUs = (cpuUsOf(pid) - before[0]) / count;
          const redisUs = redisPid ? (cpuUsOf(redisPid) - before[1]) / count : Number.NaN;
          return { ...figures, serverUs, redisUs };
        };
      const contestants = Object.fromEntries(Object.entries(servers).map(([name, at]) => [name, contestant(at)]));
      print(title, await interleaved(contestants, repetitions));
    }
  } finally {
    await stop();
  }
}

/** @param {string} title @param {Record<string, Record<string, number>>} results */
function print(title, results) {
  const columns = ["requests/s", "server us", "Redis us", "load us", "p50 us", "p99 us", "spread %"];
  console.log(`\n${title}\n  ${"".padEnd(26)}${columns.map((name) => name.padStart(12)).join("")}`);
  for (const [name, { perSecond, serverUs, redisUs, loadUs, p50Us, p99Us, spread }] of Object.entries(results)) {
    const cells = [perSecond, serverUs, redisUs, loadUs, p50Us, p99Us, 100 * spread];
    const spelled = cells.map((value) => (Number.isNaN(value) ? "" : value.toFixed(value < 100 ? 1 : 0)).padStart(12));
    console.log(`  ${name.padEnd(26)}${spelled.join("")}`);
  }
}

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    peer: { type: "string", multiple: true, default: [] },
    gubernator: { type: "string", multiple: true, default: [] },
    node: { type: "string" },
    requests: { type: "string" },
  },
});
const peers = [...values.peer, ...values.gubernator.map((at) => `gubernator=${at}`)].map(parsePeer);
const requests = Number(values.requests ?? (values.quick ? 15_000 : 60_000));
await run({ requests, repetitions: values.quick ? 3 : 5, peers, node: values.node });
