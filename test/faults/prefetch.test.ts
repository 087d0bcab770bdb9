/** Units fetched ahead while Redis is away, or a cluster moves their slot. Terms and windows are long: only counts matter. */
import { createCluster } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { leaderOf, moveSlot, slotOfUser } from "./cluster-steps.js";

const LIMIT = 100_000;

function open(store: Parameters<typeof redisStore>[0], more: Partial<Rule>, deadlineMs: number): Limiter {
  const rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "365d", ...more } as Rule;
  return createLimiter({ store: redisStore(store, { deadlineMs }), rules: [rule] });
}

async function use(limiter: Limiter, times: number): Promise<{ covered: number; inProcess: number; byPolicy: number }> {
  const found = { covered: 0, inProcess: 0, byPolicy: 0 };
  for (const { allowed, guarantee, degraded } of await Promise.all(
    Array.from({ length: times }, () => limiter.check({ user: "u" })),
  )) {
    if (!allowed) continue;
    if (degraded !== undefined) found.byPolicy++;
    else found.covered++;
    if (guarantee === "prefetched") found.inProcess++;
  }
  return found;
}

/** Until units are in hand: returns what was used. */
async function warmUp(limiter: Limiter): Promise<number> {
  let used = 0;
  while (limiter.prefetchStats()!.units < 20) used += (await use(limiter, 20)).covered;
  return used;
}

describe.skipIf(whyMissing("redis"))("prefetch", () => {
  test.each(["allow", "deny"] as const)(
    "while Redis is away, units are used until they are gone, undegraded; then %s answers",
    async (onStoreFailure) => {
      await using redis = await startRedis();
      const limiter = open(redis.url, { prefetch: "60s", onStoreFailure }, 1_000);
      await warmUp(limiter);
      redis.pause();
      const { units } = limiter.prefetchStats()!;
      const found = { covered: 0, byPolicy: 0 };
      for (let i = 0; i < units + 50; i += 10) {
        const { covered, byPolicy } = await use(limiter, 10);
        found.covered += covered;
        found.byPolicy += byPolicy;
      }
      expect(found.covered).toBe(units);
      if (onStoreFailure === "allow") expect(found.byPolicy).toBeGreaterThanOrEqual(40);
      else expect(found.byPolicy).toBe(0);
      redis.resume();
      await limiter.close();
    },
  );

  test("a reset that does not reach Redis forgets nothing: what was used is charged", async () => {
    await using redis = await startRedis();
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const limiter = open(proxy.url, { prefetch: "60s", onStoreFailure: "deny" }, 1_000);
    let used = await warmUp(limiter);
    await proxy.refuse(true);
    proxy.cut();
    used += (await use(limiter, 5)).covered;
    await expect(limiter.reset("hot", { user: "u" })).rejects.toMatchObject({ code: "store-unavailable" });
    await proxy.refuse(false);
    await eventually("Redis answers again", () => limiter.ready());
    await limiter.close();
    const other = open(redis.url, { prefetch: "60s", onStoreFailure: "deny" }, 20_000);
    expect((await other.peek({ user: "u" })).remaining).toBe(LIMIT - used);
    await other.close();
  });

  test("a cluster that moves the slot of a key: units in hand count, and the limit passes, no more and no less", async () => {
    await using cluster = await startCluster();
    const limit = 2_000;
    const nodeRedis = await createCluster({
      rootNodes: cluster.leaders.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
    }).connect();
    const limiters = [cluster.url, nodeRedis].map((store) =>
      open(store, { prefetch: "20s", limit, onStoreFailure: "deny" }, 20_000),
    );
    const drainAll = async (times: number): Promise<number> =>
      (await Promise.all(limiters.map((limiter) => use(limiter, times)))).reduce(
        (sum, { covered }) => sum + covered,
        0,
      );
    let used = 0;
    for (const limiter of limiters) used += await warmUp(limiter);
    const slot = slotOfUser("u");
    const { leader: from } = await leaderOf(cluster, "u");
    const to = cluster.leaders.find((server) => server !== from)!;
    // Before the first key moves, while the counter and its grants lie apart (that uses up the limit), and after both moved.
    const asked = [20, limit, 20];
    const passed: number[] = [];
    const moved = await moveSlot(cluster, {
      slot,
      from,
      to,
      between: async () => void passed.push(await drainAll(asked[passed.length]!)),
    });
    expect(moved).toBe(2);
    expect(passed[1]).toBeGreaterThan(0);
    used += passed.reduce((sum, found) => sum + found, 0);
    for (let found = 1; found > 0; used += found) found = await drainAll(100);
    expect(used).toBe(limit);
    expect(await drainAll(10)).toBe(0);
    await Promise.all(limiters.map((limiter) => limiter.close()));
    nodeRedis.destroy();
  });
});
