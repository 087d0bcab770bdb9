/**
 * A cluster of three beside one Redis: what a decision costs its client, and how many there are a second.
 *   node bench/cluster.mjs [--quick]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { drive, interleaved } from "./measure.mjs";
import { startRedis } from "./redis-server.mjs";
import { printBars, printSection } from "./report.mjs";

const NODES = 3;
const SLOTS = 16_384;
const USERS = 10_000;
const ONE = "one Redis";
const CLUSTER = "cluster of three";
const MOST_CPU = 1.4;
const LEAST_RATE = 0.7;

const oneRule = [{ id: "per-user", key: ["user"], algorithm: "rolling-window", limit: 1_000, window: "1m" }];
const twoRules = [
  ...oneRule,
  { id: "per-path", key: ["path"], algorithm: "token-bucket", limit: 1_000_000, window: "1m" },
];

async function startCluster() {
  const nodes = await Promise.all(Array.from({ length: NODES }, () => startRedis(["--cluster-enabled", "yes"])));
  for (const [i, node] of nodes.entries()) {
    const [first, last] = [Math.floor((i * SLOTS) / NODES), Math.floor(((i + 1) * SLOTS) / NODES) - 1];
    await node.admin.call("CLUSTER", "ADDSLOTSRANGE", first, last);
    if (i > 0) await node.admin.call("CLUSTER", "MEET", "127.0.0.1", nodes[0].port);
  }
  const isWhole = async (node) => /cluster_state:ok[\s\S]*cluster_known_nodes:3/.test(await node.admin.cluster("INFO"));
  while (!(await Promise.all(nodes.map(isWhole))).every(Boolean)) await sleep(100);
  const all = async (ask) => (await Promise.all(nodes.map(ask))).reduce((sum, value) => sum + Number(value), 0);
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    cpuUs: () => all((node) => node.cpuUs()),
    evalshaCalls: () => all((node) => node.evalshaCalls()),
    async clear() {
      await Promise.all(nodes.map(({ admin }) => Promise.all([admin.flushall(), admin.config("RESETSTAT")])));
    },
    stop: () => Promise.all(nodes.map((node) => node.stop())),
  };
}

export async function clusterSections(redis, { quick, repetitions }) {
  const cluster = await startCluster();
  try {
    const single = {
      ...redis,
      clear: () => Promise.all([redis.admin.flushall(), redis.admin.config("RESETSTAT")]),
    };
    const load = { count: quick ? 30_000 : 100_000, inFlight: 256 };
    const through = (servers, rules) => async () => {
      await servers.clear();
      const limiter = createLimiter({ store: redisStore(servers.url, { deadlineMs: 10_000 }), rules });
      await limiter.ready();
      const decide = (n) => limiter.check({ user: `user-${(n * 7919) % USERS}`, path: `/v1/${n % 100}` });
      const figures = await drive({ ...load, redis: servers }, decide);
      const callsPerDecision = (await servers.evalshaCalls()) / load.count;
      await limiter.close();
      return { ...figures, callsPerDecision };
    };
    const sections = [];
    for (const [title, rules] of [
      ["one rule", oneRule],
      ["two rules of two keys", twoRules],
    ]) {
      const contestants = { [ONE]: through(single, rules), [CLUSTER]: through(cluster, rules) };
      const results = await interleaved(contestants, repetitions);
      sections.push({ title: `a cluster, ${title}, 256 in flight`, base: ONE, results });
    }
    return sections;
  } finally {
    await cluster.stop();
  }
}

export function clusterBars([{ results }]) {
  const cpu = results[CLUSTER].nodeUs / results[ONE].nodeUs;
  const rate = results[CLUSTER].perSecond / results[ONE].perSecond;
  return [
    {
      what: "cluster of three against one Redis: client CPU a decision",
      wanted: `at most ${MOST_CPU}`,
      measured: cpu,
      met: cpu <= MOST_CPU,
    },
    {
      what: "the same: decisions a second",
      wanted: `at least ${LEAST_RATE}`,
      measured: rate,
      met: rate >= LEAST_RATE,
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const quick = process.argv.includes("--quick");
  const redis = await startRedis();
  const sections = await clusterSections(redis, { quick, repetitions: quick ? 3 : 5 });
  for (const section of sections) printSection(section);
  printBars(clusterBars(sections));
  await redis.stop();
}
