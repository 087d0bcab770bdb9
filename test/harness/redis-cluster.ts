/**
 * A real Redis Cluster on loopback: leaders that share the slots, and replicas of each where asked for.
 * Built by commands alone (ADDSLOTSRANGE, MEET, REPLICATE); ready when every node says so.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "./redis-server.js";

export interface RedisCluster extends AsyncDisposable {
  /** `redis+cluster://…` with every leader. */
  readonly url: string;
  readonly leaders: readonly RedisServer[];
  readonly replicas: readonly RedisServer[];
  /** Runs a command on every leader. */
  onLeaders(...args: string[]): Promise<string[]>;
  stop(): Promise<void>;
}

const SLOTS = 16_384;

export async function startCluster(options: { leaders?: number; replicasEach?: number } = {}): Promise<RedisCluster> {
  const count = options.leaders ?? 3;
  const node = (): Promise<RedisServer> =>
    startRedis({
      args: ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no"],
    });
  const leaders = await Promise.all(Array.from({ length: count }, node));
  const replicas = await Promise.all(Array.from({ length: count * (options.replicasEach ?? 0) }, node));
  const all = [...leaders, ...replicas];
  await Promise.all(
    leaders.map((leader, i) => {
      const first = Math.floor((i * SLOTS) / count);
      const last = Math.floor(((i + 1) * SLOTS) / count) - 1;
      return leader.cli("CLUSTER", "ADDSLOTSRANGE", String(first), String(last));
    }),
  );
  for (const other of all.slice(1)) await all[0]!.cli("CLUSTER", "MEET", "127.0.0.1", String(other.port));
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
  const cluster: RedisCluster = {
    url: `redis+cluster://${leaders.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    leaders,
    replicas,
    onLeaders: (...args) => Promise.all(leaders.map((leader) => leader.cli(...args))),
    async stop() {
      await Promise.all(all.map((server) => server.stop()));
    },
    [Symbol.asyncDispose]: () => cluster.stop(),
  };
  return cluster;
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await holds()) return;
    await sleep(50);
  }
  throw new Error(`not within 20 s: ${what}`);
}
