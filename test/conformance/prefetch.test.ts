/** Units fetched ahead, on every store in Redis: by URL, by ioredis and by node-redis, on one server and on a cluster. */
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";

const LIMIT = 100_000;
const forms: readonly Record<string, unknown>[] = [
  { algorithm: "token-bucket" },
  { algorithm: "gcra" },
  { algorithm: "fixed-window" },
  { algorithm: "rolling-window" },
  { algorithm: "rolling-window", storage: "sorted-set" },
];

describe.skipIf(whyMissing("redis"))("prefetch", async () => {
  if (whyMissing("redis")) return;
  const server = await startRedis();
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
    await server.stop();
    await servers.stop();
  });

  const targets = { url: server.url, ioredis, nodeRedis, clusterUrl: servers.url, cluster, nodeCluster };

  test.each(Object.entries(targets))(
    "%s: busy keys are decided in process, and no unit comes twice",
    async (name, target) => {
      // Long terms: a stall of this machine must not end what is in hand.
      const rules = forms.map(
        (own, i) =>
          ({
            id: `${name.toLowerCase()}-${i}`,
            key: ["user"],
            match: { only: String(i) },
            limit: LIMIT,
            window: "365d",
            prefetch: "2s",
            ...own,
          }) as unknown as Rule,
      );
      const open = (): ReturnType<typeof createLimiter> =>
        createLimiter({ store: redisStore(target as string, { deadlineMs: 60_000 }), rules });
      const limiter = open();
      for (let i = 0; i < forms.length; i++) {
        let used = 0;
        let inProcess = 0;
        for (let round = 0; round < 400 && inProcess < 50; round++) {
          const decisions = await Promise.all(
            Array.from({ length: 10 }, () => limiter.check({ only: String(i), user: "u" })),
          );
          used += decisions.filter(({ allowed }) => allowed).length;
          inProcess += decisions.filter(({ guarantee }) => guarantee === "prefetched").length;
          await new Promise((resolve) => setTimeout(resolve, 1));
        }
        expect(inProcess).toBeGreaterThanOrEqual(50);
        const { remaining } = await limiter.peek({ only: String(i), user: "u" });
        expect(used + remaining!).toBeLessThanOrEqual(LIMIT);
        rules[i] = { ...rules[i]!, description: String(used) };
      }
      await limiter.close();
      const after = open();
      for (let i = 0; i < forms.length; i++) {
        // Everything in hand went back, and everything used is charged.
        const { remaining } = await after.peek({ only: String(i), user: "u" });
        expect(remaining).toBe(LIMIT - Number(rules[i]!.description));
      }
      await after.close();
    },
  );

  test.each(Object.entries(targets))(
    "%s: a burst on a cold key is decided at once, exactly, and each request of it can be refunded",
    async (name, target) => {
      const rules = forms.map(
        (own, i) =>
          ({
            id: `${name.toLowerCase()}-cold-${i}`,
            key: ["user"],
            match: { only: String(i) },
            limit: 50,
            window: "365d",
            prefetch: "2s",
            ...own,
          }) as unknown as Rule,
      );
      const limiter = createLimiter({ store: redisStore(target as string, { deadlineMs: 60_000 }), rules });
      for (let i = 0; i < forms.length; i++) {
        const attributes = { only: String(i), user: "u" };
        const burst = (times: number) => Promise.all(Array.from({ length: times }, () => limiter.check(attributes)));
        const first = await burst(30);
        expect(first.every(({ allowed }) => allowed)).toBe(true);
        for (const decision of first.slice(0, 4)) expect(await limiter.refund(decision)).toBe(true);
        expect(await limiter.refund(first[0]!)).toBe(false);
        // 26 are used: of all that follow, 24 fit. The key is busy by now: what this burst fetched ahead may wait for the next.
        const admittedOf = async (times: number) => (await burst(times)).filter(({ allowed }) => allowed).length;
        let admitted = await admittedOf(40);
        for (let again = 0; admitted < 24 && again < 100; again++) {
          await sleep(50);
          admitted += await admittedOf(40);
        }
        expect([admitted, await admittedOf(40)]).toEqual([24, 0]);
      }
      await limiter.close();
    },
  );
});
