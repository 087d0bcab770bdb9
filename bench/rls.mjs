/**
 * Servers of Envoy's rate limit service side by side: requests a second, the server's own processor time for a request, and latency.
 *
 *   npm run build && node bench/rls.mjs [--quick] [--peer NAME=HOST:PORT,PID[,PID OF ITS REDIS]]... [--gubernator HOST:PORT,PID] [--node FILE] [--requests N]
 *
 * Gubernator has an API of its own, in which each request carries its limit; it is asked for the same counters. Any other peer is another
 * RLS server that you started, with its process id. It is asked for domain `bench` and one entry, `user` (a limit that is never reached) or
 * `visitor` (1 an hour: 95 % refused). docs/performance.md says how peers are set up alike. Peers of the names `ratelimit`
 * (envoyproxy/ratelimit), `limitador` and `gubernator` are held against the aims of that page.
 * Sluice runs as users run it: the command, monitoring on; with --node also on another Node.
 *
 * Load, server and Redis share the machine, so requests a second tell what all three cost together; their processor times stand beside them.
 */
import { parseArgs } from "node:util";
import { loadFrames } from "./grpc-load.mjs";
import { median, mediansOf, roundsOf } from "./measure.mjs";
import { cpuUsOf } from "./process-figures.mjs";
import { startRedis } from "./redis-server.mjs";
import { printBars } from "./report.mjs";
import { apis } from "./rls-messages.mjs";
import { startSluice } from "./rls-service.mjs";

const USERS = 10_000;
const REQUESTS_A_VISITOR = 20;
const BASE = "sluice, Redis";
const MEMORY = "sluice, memory";

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
    [MEMORY]: await startSluice([]),
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

/** One load on one server. */
function contestant(
  { connections, inFlight, counted, share = 1 },
  { host, port, pid, redisPid, api = apis.rls },
  requests,
) {
  const count = Math.round(requests * share);
  return async () => {
    const messages = counted(count).map(api.messageOf);
    const before = [cpuUsOf(pid), redisPid ? cpuUsOf(redisPid) : 0];
    const figures = await loadFrames({ host, port, count, connections, inFlight, path: api.path, messages });
    const serverUs = (cpuUsOf(pid) - before[0]) / count;
    const redisUs = redisPid ? (cpuUsOf(redisPid) - before[1]) / count : Number.NaN;
    return { ...figures, serverUs, redisUs };
  };
}

async function run({ requests, repetitions, peers, node }) {
  const { servers, stop } = await openServers({ peers, node });
  try {
    const names = Object.keys(servers);
    // Every round has every load on every server: what one load costs is compared with another's of the same minute.
    const contestants = workloads.flatMap((load, i) =>
      names.map((name) => [`${i} ${name}`, contestant(load, servers[name], requests)]),
    );
    const runs = await roundsOf(Object.fromEntries(contestants), repetitions);
    const rounds = workloads.map((_, i) => Object.fromEntries(names.map((name) => [name, runs[`${i} ${name}`]])));
    for (const [i, { title }] of workloads.entries()) print(title, mediansOf(rounds[i]));
    printBars(barsOf(rounds));
  } finally {
    await stop();
  }
}

/**
 * The aims of docs/performance.md, for the peers that are there: the median of the ratios of each round, so that a minute in which the machine
 * was slow counts for both.
 * @param {Record<string, Record<string, number>[]>[]} rounds in the order of the workloads
 */
function barsOf([pipelined, connected, refused, alone]) {
  const atLeast = (what, aim, measured) => ({ what, wanted: `at least ${aim}`, measured, met: measured >= aim });
  const atMost = (what, aim, measured) => ({ what, wanted: `at most ${aim}`, measured, met: measured <= aim });
  const ratio = (ours, theirs, measure) => median(ours.map((figures, i) => figures[measure] / theirs[i][measure]));
  const against = (runs, name, measure, base = BASE) => ratio(runs[base], runs[name], measure);
  const bars = [
    atMost("a refusal against an admission: server CPU", 0.8, ratio(refused[BASE], connected[BASE], "serverUs")),
  ];
  if (pipelined.ratelimit !== undefined) {
    bars.push(
      atLeast("ratelimit, 1 x 64: requests/s", 2.5, against(pipelined, "ratelimit", "perSecond")),
      atLeast("ratelimit, 64 x 1: requests/s", 2.5, against(connected, "ratelimit", "perSecond")),
      atMost("ratelimit, 1 x 64: server CPU", 0.4, against(pipelined, "ratelimit", "serverUs")),
      atMost("ratelimit, 64 x 1: server CPU", 0.4, against(connected, "ratelimit", "serverUs")),
      atLeast("ratelimit, refused: requests/s", 1.5, against(refused, "ratelimit", "perSecond")),
      atMost("ratelimit, one at a time: p50", 1, against(alone, "ratelimit", "p50Us")),
    );
  }
  for (const [name, aim] of Object.entries({ gubernator: 1.5, limitador: 1.3 })) {
    if (pipelined[name] === undefined) continue;
    for (const [load, runs] of Object.entries({ "1 x 64": pipelined, "64 x 1": connected, refused })) {
      bars.push(atLeast(`${name}, ${load}: requests/s`, aim, against(runs, name, "perSecond", MEMORY)));
    }
  }
  return bars;
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
