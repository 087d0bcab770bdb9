/** A leader cut off with its clients from the rest of the cluster (split brain), under load on both sides; judged afterwards. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { until } from "../harness/redis-cluster.js";
import { makeUrgent } from "../harness/server-process.js";
import { slotOfUser } from "./cluster-steps.js";
import { exactAfterMs, excesses, summary, waits } from "./judge.js";
import { type PartitionedCluster, startPartitionedCluster } from "./partition.js";
import { startLoad } from "./steady-load.js";

const deadlineMs = 200;
const limit = { limit: 20, windowMs: 1_000 };
const rule: Rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 20, window: "1s" };

describe.skipIf(whyMissing("redis"))("a partition of a 3 + 3 cluster", () => {
  let network: PartitionedCluster;
  const limiters: Limiter[] = [];

  beforeAll(async () => {
    makeUrgent();
    network = await startPartitionedCluster({ leaders: 3, replicasEach: 1 });
  });
  afterAll(async () => {
    for (const limiter of limiters) await limiter.close();
    await network?.stop();
  });

  test("both sides answer, neither admits more than the limit, and it heals by itself", async () => {
    const { cluster } = network;
    const [lonely, ...others] = cluster.nodes;
    const limiterBeside = async (nodes: typeof others): Promise<Limiter> => {
      const store = redisStore(await network.clientBeside(nodes), { deadlineMs, rememberRefusals: false });
      const limiter = createLimiter({ store, rules: [rule] });
      limiters.push(limiter);
      await until("the store answers", () => limiter.ready());
      return limiter;
    };
    const here = await limiterBeside([lonely!]);
    const there = await limiterBeside(others);
    // The first leader has the first third of the slots.
    const users = Array.from({ length: 400 }, (_, i) => `u${i}`)
      .filter((user) => slotOfUser(user) < 5_000)
      .slice(0, 3);
    const minority = startLoad({ limiters: [here], users, perSecond: 120 });
    const majority = startLoad({ limiters: [there], users, perSecond: 120 });
    await sleep(1_000);
    network.cutOff([lonely!]);
    const cutAtMs = performance.now();
    const replica = cluster.replicas[0]!;
    await until("the replica leads on the other side", async () => (await replica.cli("ROLE")).startsWith("master"));
    const promotedAtMs = performance.now();
    await sleep(3_000);
    network.heal();
    const healedAtMs = performance.now();
    await until("the old leader follows", async () => (await lonely!.cli("ROLE")).startsWith("slave"));
    const followsAtMs = performance.now();
    await sleep(3_500);
    await Promise.all([minority.stop(), majority.stop()]);

    const both = [...minority.history, ...majority.history];
    const worst = Math.max(0, ...excesses(both, limit).map(({ count }) => count));
    const exactThereMs = exactAfterMs(
      majority.history.filter(({ answeredAtMs }) => answeredAtMs < healedAtMs),
      promotedAtMs,
    );
    const exactHealedMs = exactAfterMs(both, healedAtMs);
    console.log(
      `partition: replica leads after ${(promotedAtMs - cutAtMs).toFixed(0)} ms; cut-off side ${summary(minority.history).checks} checks, ` +
        `${summary(minority.history).byPolicy} by policy; other side ${summary(majority.history).checks}, ${summary(majority.history).byPolicy} by policy, ` +
        `exact ${exactThereMs?.toFixed(0)} ms after the promotion; at most ${worst} beyond a limit of ${limit.limit}, both sides together; ` +
        `healed: old leader follows after ${(followsAtMs - healedAtMs).toFixed(0)} ms, everyone exact after ${exactHealedMs?.toFixed(0)} ms`,
    );
    expect(summary(both).failures).toEqual([]);
    for (const { history, lateTurns } of [minority, majority]) {
      expect(waits(history, { deadlineMs, lateTurns }).worstOwnMs).toBeLessThanOrEqual(deadlineMs + 20);
      expect(excesses(history, limit)).toEqual([]);
    }
    // Cut off for longer than the node timeout, a leader without a majority stops deciding: policies answer there.
    expect(summary(minority.history).byPolicy).toBeGreaterThan(50);
    expect(worst).toBeLessThanOrEqual(limit.limit);
    expect(exactThereMs).toBeLessThanOrEqual(2_000);
    expect(exactHealedMs).toBeLessThanOrEqual(3_000);
    const settled = both.filter(({ sentAtMs }) => sentAtMs > followsAtMs + limit.windowMs + 500);
    expect(settled.length).toBeGreaterThan(100);
    expect(excesses(settled, limit)).toEqual([]);
  }, 90_000);
});
