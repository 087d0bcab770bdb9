/** One limit over two regions, on every store in Redis: by URL, by ioredis and by node-redis, on one server and on a cluster. */
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";

const LIMIT = 60;
const forms: readonly Record<string, unknown>[] = [
  { algorithm: "token-bucket" },
  { algorithm: "gcra", burst: LIMIT },
  { algorithm: "fixed-window" },
  { algorithm: "rolling-window" },
  { algorithm: "rolling-window", storage: "sorted-set" },
  { algorithm: "rolling-window", prefetch: "1s" },
];

describe.skipIf(whyMissing("redis"))("regions", async () => {
  if (whyMissing("redis")) return;
  const [server, other] = [await startRedis(), await startRedis()];
  const servers = await startCluster();
  const nodes = servers.leaders.map(({ port }) => ({ host: "127.0.0.1", port }));
  const ioredis = new Redis(server.url);
  const nodeRedis = await createClient({ url: server.url }).connect();
  const cluster = new Cluster(nodes);
  const nodeCluster = await createCluster({
    rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
  }).connect();

  afterAll(async () => {
    ioredis.disconnect();
    cluster.disconnect();
    nodeRedis.destroy();
    await nodeCluster.destroy();
    await Promise.all([server.stop(), other.stop(), servers.stop()]);
  });

  const targets = { url: server.url, ioredis, nodeRedis, clusterUrl: servers.url, cluster, nodeCluster };
  type Target = keyof typeof targets;
  const pairs: readonly [region: Target, home: Target][] = [
    ["url", "clusterUrl"],
    ["clusterUrl", "url"],
    ["ioredis", "nodeCluster"],
    ["nodeCluster", "ioredis"],
    ["nodeRedis", "cluster"],
    ["cluster", "nodeRedis"],
  ];

  test.each(pairs)("%s in the region, %s at home: two regions get the limit together, and no more", async (...pair) => {
    const [region, home] = pair;
    const rules = forms.map(
      (own, i) =>
        ({
          id: `${region.toLowerCase()}-${i}`,
          key: ["user"],
          match: { only: String(i) },
          scope: "global",
          limit: LIMIT,
          window: "365d",
          onStoreFailure: "deny",
          ...own,
        }) as unknown as Rule,
    );
    const here: Rule = {
      id: `${region.toLowerCase()}-here`,
      key: [],
      algorithm: "fixed-window",
      limit: 1e6,
      window: "1d",
    };
    const open = (name: string, store: unknown): Limiter =>
      createLimiter({
        rules: [here, ...rules],
        region: name,
        store: redisStore(store as string, { deadlineMs: 60_000 }),
        globalStore: redisStore(targets[home] as string, { deadlineMs: 60_000 }),
      });
    const [eu, us] = [open("eu", targets[region]), open("us", other.url)];
    const usedBy: number[] = [];
    for (let i = 0; i < forms.length; i++) {
      const use = async (limiter: Limiter): Promise<number> => {
        const asked = Array.from({ length: 5 }, () => limiter.check({ only: String(i), user: "u" }));
        return (await Promise.all(asked)).filter(({ allowed }) => allowed).length;
      };
      let used = 0;
      for (let found = 1; found > 0; used += found) found = (await use(eu)) + (await use(us));
      usedBy.push(used);
      // Units in an instance's hands may outlast the last request that was refused.
      if (!("prefetch" in forms[i]!)) expect([forms[i], used]).toEqual([forms[i], LIMIT]);
    }
    await Promise.all([eu.close(), us.close()]);
    // Nothing was lost, and nothing came twice: what was not used is at home again.
    const ap = open("ap", other.url);
    for (const [i, used] of usedBy.entries()) {
      const { remaining } = await ap.peek({ only: String(i), user: "u" });
      expect([forms[i], used + remaining!]).toEqual([forms[i], LIMIT]);
    }
    await ap.close();
  });
});
