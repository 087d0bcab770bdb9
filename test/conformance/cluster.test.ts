/** The table on a real Redis Cluster of three leaders: by URL, by ioredis and by node-redis; and what only a cluster can do. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { startCluster } from "../harness/redis-cluster.js";
import { conformance } from "./conformance.js";
import { redisUnderTest } from "./redis-under-test.js";
import { lateRefunds } from "./refunds.js";

describe.skipIf(whyMissing("redis"))("stores in a Redis Cluster", async () => {
  if (whyMissing("redis")) return;
  const servers = await startCluster();
  const nodes = servers.leaders.map(({ port }) => ({ host: "127.0.0.1", port }));
  const ioredis = new Cluster(nodes);
  const nodeRedis = await createCluster({
    rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
  }).connect();

  afterAll(async () => {
    ioredis.disconnect();
    await nodeRedis.destroy();
    await servers.stop();
  });

  for (const [name, client] of [
    ["Redis Cluster by URL", servers.url],
    ["Redis Cluster by ioredis", ioredis],
    ["Redis Cluster by node-redis", nodeRedis],
  ] as const) {
    const store = redisUnderTest({ name, client, clear: () => servers.onLeaders("FLUSHALL") });
    conformance(store);
    lateRefunds(store);
  }

  describe("what only a cluster can do", () => {
    const limiterWith = (rules: readonly Rule[]): Limiter =>
      createLimiter({ store: redisStore(servers.url, { deadlineMs: 60_000 }), rules });

    beforeEach(async () => {
      await servers.onLeaders("FLUSHALL");
    });

    const apart: Rule[] = [
      { id: "per-user", key: ["user"], algorithm: "fixed-window", limit: 5, window: "365d" },
      { id: "per-path", key: ["path"], algorithm: "token-bucket", limit: 2, window: "365d" },
      { id: "all", key: [], algorithm: "rolling-window", limit: 100, window: "365d" },
    ];

    test("rules whose counters live in different slots are compensated: a refusal leaves nothing charged", async () => {
      const limiter = limiterWith(apart);
      for (let i = 0; i < 2; i++) {
        expect(await limiter.check({ user: "ann", path: "/x" })).toMatchObject({
          allowed: true,
          guarantee: "compensated",
        });
      }
      for (let i = 0; i < 10; i++) {
        const decision = await limiter.check({ user: "ann", path: "/x" });
        expect(decision).toMatchObject({ allowed: false, violated: ["per-path"], guarantee: "compensated" });
        expect(decision.checks.map(({ remaining }) => remaining)).toEqual([3, 0, 98]);
      }
      const looked = await limiter.peek({ user: "ann", path: "/x" }, { cost: 0 });
      expect(looked.checks.map(({ rule, remaining }) => [rule, remaining])).toEqual([
        ["per-user", 3],
        ["per-path", 0],
        ["all", 98],
      ]);
      await limiter.close();
    });

    test("the cluster example tells both guarantees, and the remedy where nobody listens", async () => {
      const file = fileURLToPath(new URL("../../examples/library/cluster.mjs", import.meta.url));
      const run = async (url: string): Promise<string[]> =>
        (await promisify(execFile)(process.execPath, [file, url], { timeout: 20_000 })).stdout.trimEnd().split("\n");
      expect(await run(servers.url)).toEqual(["two slots:  compensated", "colocated:  atomic"]);
      const [degraded, apart] = await run(`redis+cluster://127.0.0.1:${await freePort()}`);
      expect(degraded).toMatch(
        /^degraded: Redis: .*; none of the cluster's addresses answers: check them, and that Redis is up$/,
      );
      expect(apart).toBe("two slots:  atomic, decided by policy: local");
    });

    test("rules that share a colocation attribute are one script again", async () => {
      const limiter = limiterWith(apart.map((rule) => ({ ...rule, colocate: "tenant" })));
      const decision = await limiter.check({ user: "ann", path: "/x", tenant: "acme" });
      expect(decision).toMatchObject({ allowed: true, guarantee: "atomic" });
      expect(decision.checks).toHaveLength(3);
      await limiter.close();
    });

    test("a repeated id over several slots is charged once, and refunded once by its id alone", async () => {
      const limiter = limiterWith(apart);
      const request = { user: "bob", path: "/y" };
      const first = await limiter.check(request, { id: "order-1" });
      expect(await limiter.check(request, { id: "order-1" })).toMatchObject({
        allowed: true,
        remaining: first.remaining,
      });
      expect((await limiter.peek(request, { cost: 0 })).checks.map(({ remaining }) => remaining)).toEqual([4, 1, 99]);
      expect([await limiter.refund("order-1"), await limiter.refund("order-1")]).toEqual([true, false]);
      expect((await limiter.peek(request, { cost: 0 })).checks.map(({ remaining }) => remaining)).toEqual([5, 2, 100]);
      await limiter.close();
    });

    test("units are given back in every slot that a check of the same attributes charges", async () => {
      const limiter = limiterWith(apart);
      const request = { user: "cleo", path: "/z" };
      await limiter.check(request, { cost: 2 });
      expect(await limiter.giveBack(request, { cost: 2 })).toBe(true);
      expect((await limiter.peek(request, { cost: 0 })).checks.map(({ remaining }) => remaining)).toEqual([5, 2, 100]);
      expect(await limiter.giveBack(request)).toBe(false);
      await limiter.close();
    });

    test("scripts are on every leader after ready(), and come back where they were lost", async () => {
      const limiter = limiterWith(apart);
      expect(await limiter.ready()).toBe(true);
      await servers.onLeaders("CONFIG", "RESETSTAT");
      for (let i = 0; i < 30; i++) await limiter.check({ user: `u${i}`, path: `/${i}` });
      expect((await servers.onLeaders("INFO", "commandstats")).join()).not.toMatch(/cmdstat_eval:/);
      await servers.onLeaders("SCRIPT", "FLUSH");
      for (let i = 0; i < 30; i++)
        expect((await limiter.check({ user: `v${i}`, path: `/${i}` })).degraded).toBeUndefined();
      await limiter.close();
    });
  });
});
