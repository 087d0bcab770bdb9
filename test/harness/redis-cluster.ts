/**
 * A real Redis Cluster on loopback: leaders that share the slots, and replicas of each where asked for.
 * Built by commands alone (ADDSLOTSRANGE, MEET, REPLICATE); ready when every node says so.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisOptions, type RedisServer, startRedis } from "./redis-server.js";

export interface RedisCluster extends AsyncDisposable {
  /** `redis+cluster://…` with every leader. */
  readonly url: string;
  readonly leaders: readonly RedisServer[];
  readonly replicas: readonly RedisServer[];
  /** Both, as they were started: a failover changes who leads, not these lists. */
  readonly nodes: readonly RedisServer[];
  /** Runs a command on every leader. */
  onLeaders(...args: string[]): Promise<string[]>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly leaders?: number;
  readonly replicasEach?: number;
  /** Of each node, by its number: leaders first. */
  readonly node?: (n: number) => RedisOptions;
  /** Where the other nodes find one; by default its own address. */
  readonly meetAt?: (server: RedisServer, n: number) => { port: number; busPort: number };
}

const SLOTS = 16_384;
/** A second without an answer, and a replica asks for votes: failovers in two to three seconds. */
const NODE_ARGS = [
  "--cluster-enabled",
  "yes",
  "--cluster-node-timeout",
  "1000",
  "--cluster-require-full-coverage",
  "no",
];

export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const count = options.leaders ?? 3;
  const start = (_: unknown, n: number): Promise<RedisServer> => {
    const own = options.node?.(n) ?? {};
    return startRedis({ ...own, args: [...NODE_ARGS, ...(own.args ?? [])] });
  };
  const all = await Promise.all(Array.from({ length: count * (1 + (options.replicasEach ?? 0)) }, start));
  const leaders = all.slice(0, count);
  const replicas = all.slice(count);
  await Promise.all(
    leaders.map((leader, i) => {
      const first = Math.floor((i * SLOTS) / count);
      const last = Math.floor(((i + 1) * SLOTS) / count) - 1;
      return leader.cli("CLUSTER", "ADDSLOTSRANGE", String(first), String(last));
    }),
  );
  const meetAt = options.meetAt ?? (({ port }) => ({ port, busPort: port + 10_000 }));
  for (let n = 1; n < all.length; n++) {
    const { port, busPort } = meetAt(all[n]!, n);
    await all[0]!.cli("CLUSTER", "MEET", "127.0.0.1", String(port), String(busPort));
  }
  await until("every node knows every other", async () => {
    const known = await Promise.all(all.map((server) => server.cli("CLUSTER", "NODES")));
    return known.every(
      (nodes) =>
        nodes
          .trim()
          .split("\n")
          .filter((line) => !line.includes("handshake")).length === all.length,
    );
  });
  for (const [i, replica] of replicas.entries()) {
    const leader = leaders[i % count]!;
    await replica.cli("CLUSTER", "REPLICATE", (await leader.cli("CLUSTER", "MYID")).trim());
  }
  await until("the cluster is whole", async () => {
    const states = await Promise.all(all.map((server) => server.cli("CLUSTER", "INFO")));
    return states.every(
      (info) => info.includes("cluster_state:ok") && info.includes(`cluster_slots_assigned:${SLOTS}`),
    );
  });
  await until("every replica follows its leader", async () => {
    const states = await Promise.all(replicas.map((server) => server.cli("INFO", "replication")));
    return states.every((info) => info.includes("master_link_status:up"));
  });
  const cluster: RedisCluster = {
    url: `redis+cluster://${leaders.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    leaders,
    replicas,
    nodes: all,
    onLeaders: (...args) => Promise.all(leaders.map((leader) => leader.cli(...args))),
    async stop() {
      await Promise.all(all.map((server) => server.stop()));
    },
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
  return cluster;
}

export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await holds()) return;
    await sleep(50);
  }
  throw new Error(`not within 20 s: ${what}`);
}
