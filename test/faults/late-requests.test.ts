/**
 * Requests that reach Redis late: their caller was answered by a policy, has repeated them elsewhere, and had them refunded or undone.
 * Nobody would give back what they charged then.
 */
import { createCluster } from "redis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type RedisClient,
  type RedisConnection,
  redisConnection,
} from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const rules: Rule[] = [
  { id: "user", key: ["user"], algorithm: "fixed-window", limit: 10, window: "1d", onStoreFailure: "deny" },
  { id: "ring", key: ["user"], algorithm: "rolling-window", limit: 10, window: "1d", onStoreFailure: "deny" },
];
const shut: Rule = { id: "shut", key: ["path"], algorithm: "gcra", limit: 1, window: "1d", onStoreFailure: "deny" };
const options = { deadlineMs: 5_000, rememberRefusals: false, breakerFailures: 1_000 };

describe.skipIf(whyMissing("redis"))("a request that reaches Redis late", () => {
  let redis: RedisServer;
  let cluster: RedisCluster;
  let nodeRedis: ReturnType<typeof createCluster>;
  const limiters: Limiter[] = [];

  beforeAll(async () => {
    [redis, cluster] = await Promise.all([startRedis(), startCluster({ leaders: 3 })]);
    nodeRedis = createCluster({ rootNodes: cluster.leaders.map(({ url }) => ({ url })) });
    await nodeRedis.connect();
  });
  afterAll(async () => {
    for (const limiter of limiters) await limiter.close();
    nodeRedis?.destroy();
    await redis?.stop();
    await cluster?.stop();
  });

  const targets: Record<string, () => string | RedisClient> = {
    "one Redis": () => redis.url,
    "a cluster": () => cluster.url,
    "a cluster through node-redis": () => nodeRedis as unknown as RedisClient,
  };

  async function limiterOn(connection: RedisConnection, own: readonly Rule[]): Promise<Limiter> {
    const limiter = createLimiter({ store: new RedisStore(connection, options), rules: own });
    limiters.push(limiter);
    await until("the store answers", () => limiter.ready());
    return limiter;
  }

  /** A limiter that is cut off from its scripts while they are on their way to Redis, where they arrive later; and one that is not. */
  async function pair(target: string | RedisClient, own: readonly Rule[] = rules) {
    const connection = redisConnection(target);
    const send = connection.send.bind(connection);
    let held: Promise<void> | undefined;
    const underWay: Promise<unknown>[] = [];
    connection.send = (command, args) => {
      if (held === undefined) return send(command, args);
      underWay.push(held.then(() => send(command, args)).catch(() => undefined));
      return Promise.reject(new Error("Connection is closed."));
    };
    const slow = await limiterOn(connection, own);
    const fast = await limiterOn(redisConnection(target), own);
    return {
      slow,
      fast,
      /** What is sent from now on has no answer, and arrives when the returned function is called; that resolves when all of it has run. */
      hold(): () => Promise<void> {
        let release = (): void => {};
        held = new Promise((resolve) => {
          release = resolve;
        });
        return async () => {
          held = undefined;
          release();
          await Promise.all(underWay.splice(0));
        };
      },
    };
  }

  const left = async (limiter: Limiter, attributes: Record<string, string>): Promise<number[]> =>
    (await limiter.peek(attributes, { cost: 0 })).checks.map(({ remaining }) => remaining);

  test.each(Object.keys(targets))(
    "charges nothing once its id was refunded, and a repeat is decided anew: %s",
    async (on) => {
      const { slow, fast, hold } = await pair(targets[on]!());
      const user = { user: `refunded on ${on}` };
      const id = `refunded on ${on}`;
      await slow.check(user, { id: `${id}, before` });
      const arrive = hold();
      for (let n = 0; n < 3; n++)
        expect(await slow.check(user, { id })).toMatchObject({ allowed: false, degraded: "deny" });
      expect(await fast.check(user, { id })).toMatchObject({ allowed: true });
      expect(await fast.refund(id)).toBe(true);
      await arrive();
      expect(await left(fast, user)).toEqual([9, 9]);
      for (const limiter of [slow, fast]) {
        for (const remaining of [8, 8])
          expect(await limiter.check(user, { id })).toMatchObject({ allowed: true, remaining });
        expect([await fast.refund(id), await slow.refund(id)]).toEqual([true, false]);
      }
      expect(await left(fast, user)).toEqual([9, 9]);
    },
  );

  test("charges nothing once its id was undone, because another slot refused it", async () => {
    const { slow, fast, hold } = await pair(cluster.url, [...rules, shut]);
    const request = { user: "undone", path: "p" };
    await fast.check({ path: "p" });
    await slow.check({ user: "undone" }, { id: "undone, before" });
    const arrive = hold();
    expect(await slow.check(request, { id: "undone" })).toMatchObject({ allowed: false, degraded: "deny" });
    expect(await fast.check(request, { id: "undone" })).toMatchObject({ allowed: false, violated: ["shut"] });
    await arrive();
    expect(await left(fast, request)).toEqual([9, 9, 0]);
  });

  test("a cold process repeats an id that was refunded, and is charged", async () => {
    for (const [on, target] of Object.entries(targets)) {
      const { fast } = await pair(target());
      const user = { user: `cold on ${on}` };
      expect(await fast.check(user, { id: on })).toMatchObject({ allowed: true, remaining: 9 });
      expect(await fast.refund(on)).toBe(true);
      const { slow } = await pair(target());
      expect(await slow.check(user, { id: on })).toMatchObject({ allowed: true, remaining: 9 });
      expect(await left(fast, user)).toEqual([9, 9]);
    }
  });
});
