/** Reservations where their store is in motion: a slot of a cluster that moves with open holds in it, and a server clock that steps. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { leaderOf, moveSlot, slotOfUser, upTo } from "./cluster-steps.js";

const LIMIT = 100_000;
const reserving = (id: string, numbers: Partial<Rule> = {}): Rule =>
  ({
    id,
    key: ["user"],
    algorithm: "fixed-window",
    limit: LIMIT,
    window: "3650d",
    cost: { attribute: "units" },
    estimate: { default: 100, ttl: "1h" },
    ...numbers,
  }) as Rule;

async function used(limiter: Limiter, user: string): Promise<number> {
  const { remaining, debt = 0 } = await limiter.peek({ user }, { cost: 0 });
  return LIMIT - remaining! + debt;
}

describe.skipIf(whyMissing("redis"))("a slot that moves", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ leaders: 3, replicasEach: 0 });
  });
  afterAll(() => cluster?.stop());

  test("with open reservations in it: each is settled once, at what it cost, whether before, during or behind the move", async () => {
    const limiter = createLimiter({
      store: redisStore(cluster.url, { deadlineMs: 10_000, rememberRefusals: false }),
      rules: [reserving("units")],
    });
    await until("the store answers", () => limiter.ready());
    const user = "mover";
    const { leader } = await leaderOf(cluster, user);
    const target = cluster.nodes.find((node) => node !== leader)!;
    const ids: string[] = [];
    const reserve = async (): Promise<void> => {
      const { reservation } = await limiter.check({ user });
      ids.push(reservation!.id);
    };
    for (let i = 0; i < 12; i++) await reserve();
    let cost = 0;
    let next = 0;
    const settleOne = async (units: number): Promise<void> => {
      const id = ids[next++]!;
      const first = await limiter.settle(id, { units });
      expect(first).toMatchObject({ settled: true, charged: { units } });
      // Sent again, from another instance's point of view: the same answer.
      expect(await limiter.settle(id, { units: units + 1 })).toMatchObject({ charged: { units } });
      cost += units;
    };
    await settleOne(10);
    const moved = await moveSlot(cluster, {
      slot: slotOfUser(user),
      from: leader,
      to: target,
      between: async () => {
        // While keys lie on both sides: one more is held, one is settled below and one above what it holds.
        await reserve();
        await settleOne(next % 2 === 0 ? 40 : 250);
      },
    });
    expect(moved).toBeGreaterThan(3);
    while (next < ids.length) await settleOne(7);
    expect(await used(limiter, user)).toBe(cost);
    await limiter.close();
  });

  test("under several rules: what is not used goes back to all, though each was charged at a time of its own", async () => {
    const rolling: Partial<Rule> = { algorithm: "rolling-window", storage: "packed", window: "30d" };
    const limiter = createLimiter({
      store: redisStore(cluster.url, { deadlineMs: 10_000, rememberRefusals: false }),
      rules: [
        reserving("fixed"),
        reserving("rolling", rolling),
        reserving("sorted", { ...rolling, storage: "sorted-set" }),
      ],
    });
    await until("the store answers", () => limiter.ready());
    const user = "mover-of-several";
    const { leader } = await leaderOf(cluster, user);
    const to = cluster.nodes.find((node) => node !== leader)!;
    const ids: string[] = [];
    const reserve = async (): Promise<void> => {
      const held = await Promise.all(Array.from({ length: 10 }, () => limiter.check({ user })));
      ids.push(...held.map(({ reservation }) => reservation!.id));
    };
    await reserve();
    await moveSlot(cluster, { slot: slotOfUser(user), from: leader, to, between: upTo(8, reserve) });
    for (const id of ids) await limiter.settle(id, { units: 1 });
    const { checks } = await limiter.peek({ user }, { cost: 0 });
    expect(checks.map(({ rule, remaining }) => [rule, LIMIT - remaining!])).toEqual([
      ["fixed", ids.length],
      ["rolling", ids.length],
      ["sorted", ids.length],
    ]);
    await limiter.close();
  });
});

describe.skipIf(whyMissing("redis", "faketime"))("a server clock that steps", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ faketime: true });
  });
  afterAll(() => redis?.stop());

  test.each<[string, Partial<Rule>]>([
    ["fixed-window", {}],
    ["token-bucket", { algorithm: "token-bucket", window: "3650d" }],
    ["rolling-window", { algorithm: "rolling-window", window: "30d" }],
    ["sliding-counter", { algorithm: "sliding-counter", window: "3650d" }],
  ])(
    "%s: what is settled behind a step ahead or back is charged once, and nothing is freed by the step",
    async (id, numbers) => {
      await redis.stepClock!(0);
      const limiter = createLimiter({
        store: redisStore(redis.url, { deadlineMs: 60_000, rememberRefusals: false }),
        rules: [reserving(id, numbers)],
      });
      const hold = async (): Promise<string> => (await limiter.check({ user: "ann" })).reservation!.id;
      const [ahead, back, kept] = [await hold(), await hold(), await hold()];
      expect(await used(limiter, "ann")).toBe(300);
      // Ten minutes on, within the term.
      await redis.stepClock!(600);
      expect(await limiter.settle(ahead, { units: 30 })).toMatchObject({ settled: true });
      expect(await used(limiter, "ann")).toBe(230);
      // Twenty minutes back: before the reservations were made.
      await redis.stepClock!(-600);
      expect(await limiter.settle(back, { units: 130 })).toMatchObject({ settled: true, overrun: { [id]: 30 } });
      expect(await limiter.settle(ahead, { units: 99 })).toMatchObject({ charged: { [id]: 30 } });
      expect(await used(limiter, "ann")).toBe(260);
      expect((await limiter.extend(kept, { units: 150 })).allowed).toBe(true);
      expect(await used(limiter, "ann")).toBe(310);
      // Beyond the term of the one that is left: what it holds stands as spent.
      await redis.stepClock!(-600 + 3_600 + 20);
      expect(await limiter.settle(kept, { units: 1 })).toMatchObject({ settled: false, reason: "expired" });
      expect(await used(limiter, "ann")).toBe(310);
      await limiter.close();
    },
  );
});
