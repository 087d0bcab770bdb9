/** One Redis, or all of them, that is gone, full, cut off or forgetful, under steady load, judged afterwards. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster, until } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { makeUrgent } from "../harness/server-process.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";
import { whole } from "./cluster-steps.js";
import { exactAfterMs, excesses, summary, waits } from "./judge.js";
import { startLoad } from "./steady-load.js";

const rule: Rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 20, window: "1s" };
const limit = { limit: 20, windowMs: 1_000 };
const deadlineMs = 200;

describe.skipIf(whyMissing("redis"))("outages under steady load", () => {
  const limiters: Limiter[] = [];
  const limiterAt = (url: string, rules: readonly Rule[] = [rule], patienceMs = deadlineMs): Limiter => {
    const store = redisStore(url, { deadlineMs: patienceMs, rememberRefusals: false });
    const limiter = createLimiter({ store, rules });
    limiters.push(limiter);
    return limiter;
  };
  const answers = (limiter: Limiter): Promise<void> => until("the store answers", () => limiter.ready());

  beforeAll(() => makeUrgent());
  afterEach(async () => {
    for (const limiter of limiters.splice(0)) await limiter.close();
  });

  test("every Redis of a 3 + 3 cluster gone for 30 s, then back: all is answered by policy, and exact again within a second", async () => {
    await using cluster = await startCluster({ leaders: 3, replicasEach: 1, node: () => ({ urgent: true }) });
    const fleet = Array.from({ length: 3 }, () => limiterAt(cluster.url));
    for (const limiter of fleet) await answers(limiter);
    const load = startLoad({ limiters: fleet, users: ["a", "b", "c", "d", "e", "f"], perSecond: 150 });
    await sleep(1_000);
    await Promise.all(cluster.nodes.map((server) => server.kill()));
    const goneAtMs = performance.now();
    // After the first quick attempts, in the place of one leader, somebody who counts who knocks.
    let knocks = 0;
    await sleep(1_000);
    const door = createServer((socket) => {
      knocks++;
      socket.resetAndDestroy();
    }).listen(cluster.leaders[0]!.port, "127.0.0.1");
    await sleep(29_000);
    await new Promise((resolve) => door.close(resolve));
    const backAtMs = performance.now();
    await Promise.all(cluster.nodes.map((server) => server.restart()));
    await whole(cluster);
    await until("every leader takes commands", async () =>
      (await cluster.onLeaders("CLUSTER", "INFO")).every((info) => info.includes("cluster_state:ok")),
    );
    const wholeAtMs = performance.now();
    await sleep(2_500);
    await load.stop();

    const { history, lateTurns } = load;
    const during = history.filter(({ sentAtMs }) => sentAtMs > goneAtMs + 1_000 && sentAtMs < backAtMs);
    const exactMs = exactAfterMs(history, wholeAtMs);
    const { worstOwnMs } = waits(history, { deadlineMs, lateTurns });
    const perInterval = knocks / fleet.length / (29_000 / 500);
    console.log(
      `all gone 30 s: ${during.length} checks meanwhile, ${summary(during).byPolicy} by policy; longest wait ${worstOwnMs.toFixed(0)} ms of ${deadlineMs}; ` +
        `${perInterval.toFixed(2)} attempts to connect per instance, node and interval; exact ${exactMs?.toFixed(0)} ms after the return`,
    );
    expect(summary(history).failures).toEqual([]);
    expect(summary(during).byPolicy).toBe(during.length);
    expect(during.length).toBeGreaterThan(3_000);
    expect(worstOwnMs).toBeLessThanOrEqual(deadlineMs + 20);
    // One at each end of the time.
    expect(knocks).toBeLessThanOrEqual(fleet.length * (29_000 / 500 + 1));
    expect(exactMs).toBeLessThanOrEqual(1_000);
    expect(excesses(history, limit)).toEqual([]);
  }, 120_000);

  test("lost replies and repeated requests: with a request id each is charged once", async () => {
    await using redis = await startRedis({ urgent: true });
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const limiter = limiterAt(proxy.url, [{ ...rule, limit: 1_000, window: "1h", onStoreFailure: "deny" }], 2_000);
    await answers(limiter);
    const requests = 120;
    let [lost, repeated, retries] = [0, 0, 0];
    for (let i = 0; i < requests; i++) {
      const fault = randomInt(3);
      const done =
        fault === 0 ? proxy.dropNextReply("EVALSHA") : fault === 1 ? proxy.repeatNextRequest("EVALSHA") : undefined;
      if (fault === 0) lost++;
      if (fault === 1) repeated++;
      // A caller that was not told asks again, with the same id.
      while ((await limiter.check({ user: "ann" }, { id: `order-${i}` })).degraded !== undefined) {
        retries++;
        await answers(limiter);
      }
      await done;
    }
    const { remaining } = await limiter.peek({ user: "ann" }, { cost: 0 });
    console.log(
      `request ids: ${requests} requests, ${lost} replies lost, ${repeated} requests repeated, ${retries} retries: ${1_000 - remaining!} charged`,
    );
    expect(lost).toBeGreaterThan(10);
    expect(repeated).toBeGreaterThan(10);
    expect(1_000 - remaining!).toBe(requests);
  }, 60_000);

  test("connections that are reset again and again: everyone is answered in time, and no window holds too many", async () => {
    await using redis = await startRedis({ urgent: true });
    await using proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
    const limiter = limiterAt(proxy.url);
    await answers(limiter);
    const load = startLoad({ limiters: [limiter], users: ["a", "b"], perSecond: 200 });
    for (let i = 0; i < 12; i++) {
      await sleep(250);
      proxy.cut();
    }
    const cutAtMs = performance.now();
    await sleep(1_200);
    await load.stop();
    const { checks, byPolicy, failures } = summary(load.history);
    const { worstOwnMs } = waits(load.history, { deadlineMs, lateTurns: load.lateTurns });
    const exactMs = exactAfterMs(load.history, cutAtMs);
    console.log(`12 resets: ${checks} checks, ${byPolicy} by policy, exact ${exactMs?.toFixed(0)} ms after the last`);
    expect(failures).toEqual([]);
    expect(byPolicy).toBeGreaterThan(0);
    expect(worstOwnMs).toBeLessThanOrEqual(deadlineMs + 20);
    expect(exactMs).toBeLessThanOrEqual(1_000);
    expect(excesses(load.history, limit)).toEqual([]);
  });

  test("a script cache that is flushed ten times a second goes unnoticed", async () => {
    await using redis = await startRedis({ urgent: true });
    const limiter = limiterAt(redis.url, [rule], 2_000);
    await answers(limiter);
    const load = startLoad({ limiters: [limiter], users: ["a", "b"], perSecond: 200 });
    for (let i = 0; i < 15; i++) {
      await sleep(100);
      await redis.cli("SCRIPT", "FLUSH");
    }
    await load.stop();
    expect(summary(load.history)).toMatchObject({ byPolicy: 0, failures: [] });
    expect(excesses(load.history, limit)).toEqual([]);
    expect(summary(load.history).admitted).toBeGreaterThan(40);
  });

  describe("memory that is full", () => {
    /** Fills the server with keys of somebody else, and then allows no more than it holds. */
    const fill = async (redis: RedisServer, policy: string): Promise<void> => {
      await redis.cli("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "0");
      await redis.cli("FLUSHALL");
      await redis.cli("DEBUG", "POPULATE", "20000", "foreign", "100");
      const used = Number(/used_memory:(\d+)/.exec(await redis.cli("INFO", "memory"))![1]);
      await redis.cli("CONFIG", "SET", "maxmemory", String(used - 500_000));
    };

    test("under noeviction checks are answered by policy, the cause is told once, and counting goes on when there is room", async () => {
      await using redis = await startRedis({ urgent: true });
      const limiter = limiterAt(redis.url);
      const causes: string[] = [];
      let recoveries = 0;
      limiter.on("degraded", (cause) => causes.push(String(cause)));
      limiter.on("recovered", () => recoveries++);
      await answers(limiter);
      await fill(redis, "noeviction");
      const load = startLoad({ limiters: [limiter], users: ["a", "b"], perSecond: 200 });
      await sleep(1_000);
      const roomAtMs = performance.now();
      await redis.cli("CONFIG", "SET", "maxmemory", "0");
      await until("the end of the outage is told", async () => recoveries > 0);
      await load.stop();
      const full = load.history.filter(({ answeredAtMs }) => answeredAtMs < roomAtMs);
      const exactMs = exactAfterMs(load.history, roomAtMs);
      console.log(
        `noeviction: ${full.length} checks while full, ${summary(full).byPolicy} by policy; exact ${exactMs?.toFixed(0)} ms after there was room`,
      );
      expect(summary(load.history).failures).toEqual([]);
      expect(summary(full).byPolicy).toBe(full.length);
      expect(causes).toHaveLength(1);
      expect(causes[0]).toMatch(/OOM.*raise maxmemory/);
      expect(recoveries).toBe(1);
      expect(exactMs).toBeLessThanOrEqual(1_000);
    });

    test.each(["allkeys-lru", "allkeys-lfu", "allkeys-random"])(
      "under %s others' keys give way, and every check is decided",
      async (policy) => {
        await using redis = await startRedis();
        const limiter = limiterAt(redis.url, [rule], 2_000);
        await answers(limiter);
        await fill(redis, policy);
        for (let i = 0; i < 200; i++) expect((await limiter.check({ user: `u${i}` })).degraded).toBeUndefined();
      },
    );

    test.each(["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"])(
      "under %s only Sluice's own keys could give way: without room it is an outage like any other",
      async (policy) => {
        await using redis = await startRedis();
        const limiter = limiterAt(redis.url, [rule], 2_000);
        const causes: string[] = [];
        limiter.on("degraded", (cause) => causes.push(String(cause)));
        await answers(limiter);
        await fill(redis, policy);
        expect(await limiter.check({ user: "u" })).toMatchObject({ allowed: true, degraded: "local" });
        expect(causes[0]).toMatch(/OOM/);
      },
    );
  });

  test("what Redis says about one call alone opens no breaker: the other keys are counted", async () => {
    await using redis = await startRedis();
    const store = redisStore(redis.url, {
      deadlineMs: 2_000,
      breakerFailures: 1,
      breakerIntervalMs: 60_000,
      rememberRefusals: false,
    });
    const limiter = createLimiter({ store, rules: [rule] });
    limiters.push(limiter);
    await answers(limiter);
    await redis.cli("SADD", "sluice:1:{user=mallory}:hot:p", "not", "a", "string");
    for (let i = 0; i < 5; i++) {
      expect((await limiter.check({ user: "mallory" })).degraded).toBe("local");
      await redis.cli("SCRIPT", "FLUSH");
      expect((await limiter.check({ user: "ann" })).degraded).toBeUndefined();
    }
    expect(store.stats().breaker).toBe("closed");
  });
});
