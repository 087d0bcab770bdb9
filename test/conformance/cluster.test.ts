/** The table on a real Redis Cluster of three leaders: by URL, by ioredis and by node-redis; and what only a cluster can do. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { parseReservationId } from "../../packages/sluice/src/reservations/reservation-id.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { freePort } from "../harness/free-port.js";
import { startCluster } from "../harness/redis-cluster.js";
import { conformance } from "./conformance.js";
import { redisUnderTest } from "./redis-under-test.js";

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

  const clients = [
    ["Redis Cluster by URL", servers.url],
    ["Redis Cluster by ioredis", ioredis],
    ["Redis Cluster by node-redis", nodeRedis],
  ] as const;
  conformance(
    clients.map(([name, client]) => redisUnderTest({ name, client, clear: () => servers.onLeaders("FLUSHALL") })),
  );

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

    /** The place of an id that was sent as below, as an older version writes it, and as this one does. */
    const place = `1YfLbih4xZ5-aEgyTgWoj0\n["user=bob","path=/y"]`;
    const counters = `Sw1FPPFc6OUG4PusBv4eQY 1 2 ["per-user","per-path"]`;
    const placeKey = "sluice:1:{!3=order-1}";
    const twoSlots = apart.slice(0, 2);

    test("the place of an id is written as its layout says", async () => {
      const limiter = limiterWith(twoSlots);
      await limiter.check({ user: "bob", path: "/y" }, { id: "order-1" });
      expect(await ioredis.get(placeKey)).toBe(`${place}\n${counters}`);
      await limiter.close();
    });

    test("a place without counters, as an older version wrote it, finds the charge, and is another's only with other attributes", async () => {
      const request = { user: "bob", path: "/y" };
      const limiter = limiterWith(twoSlots);
      await limiter.check(request, { id: "order-1" });
      await ioredis.set(placeKey, place);
      await expect(limiter.check({ user: "bob" }, { id: "order-1" })).rejects.toMatchObject({
        code: "invalid-request",
      });
      expect(await ioredis.get(placeKey)).toBe(place);
      expect((await limiter.check(request, { id: "order-1" })).remaining).toBe(1);
      expect(await ioredis.get(placeKey)).toBe(`${place}\n${counters}`);
      await ioredis.set(placeKey, place);
      expect([await limiter.refund("order-1"), await limiter.refund("order-1")]).toEqual([true, false]);
      expect((await limiter.peek(request, { cost: 0 })).checks.map(({ remaining }) => remaining)).toEqual([5, 2]);
      await limiter.close();
    });

    test("tags that an edit added stand behind those of the decision, where an older version finds them too", async () => {
      const limiter = limiterWith(twoSlots);
      const request = { user: "bob", path: "/y" };
      await limiter.check(request, { id: "order-1" });
      limiter.setRules(apart);
      await limiter.check(request, { id: "order-1" });
      const [fingerprint, tags, asked] = (await ioredis.get(placeKey))!.split("\n");
      expect([fingerprint, asked]).toEqual([place.split("\n")[0], counters]);
      expect(JSON.parse(tags!)).toEqual(["user=bob", "path=/y", "*"]);
      await limiter.close();
    });

    test("a settlement over several slots that is sent again knows itself by its name, and another one is told that it came later", async () => {
      const estimated = apart.slice(0, 2).map((rule): Rule => {
        return { ...rule, limit: 100, cost: { attribute: "units" }, estimate: { default: 10 } } as Rule;
      });
      const store = redisStore(servers.url, { deadlineMs: 60_000 });
      const limiter = createLimiter({ store, rules: estimated });
      const { reservation } = await limiter.check({ user: "ann", path: "/x" });
      const { reserved } = parseReservationId(reservation!.id);
      const settle = async (units: number, name: string): Promise<unknown> => {
        const { counters, isNew, isOwn } = await store.settle(reserved, new Map([["units", units]]), name);
        return [isNew, isOwn, ...counters.map(({ charged }) => charged)];
      };
      expect(await settle(4, "first")).toEqual([true, true, 4, 4]);
      expect(await settle(4, "other")).toEqual([false, false, 4, 4]);
      expect(await settle(7, "first")).toEqual([false, true, 4, 4]);
      const { checks } = await limiter.peek({ user: "ann", path: "/x" }, { cost: 0 });
      expect(checks.map(({ remaining }) => remaining)).toEqual([96, 96]);
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
