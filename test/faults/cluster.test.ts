/**
 * Faults of a Redis Cluster of three leaders and three replicas, each under steady load from three instances, judged afterwards.
 * The figures that are printed stand in docs/reliability.md.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";
import { makeUrgent } from "../harness/server-process.js";
import {
  failOverTo,
  leaderOf,
  moveSlot,
  promoted,
  replicasOf,
  slotOfUser,
  upTo,
  usersByLeader,
  whole,
} from "./cluster-steps.js";
import { type Answer, exactAfterMs, excesses, type LateTurn, summary, waits } from "./judge.js";
import { startLoad } from "./steady-load.js";

const deadlineMs = 200;
const limit = { limit: 20, windowMs: 1_000 };
const rule: Rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 20, window: "1s" };

/** Under every fault: nobody fails, and nobody waits longer than the deadline and 20 ms, the machine's own delays taken off. */
function expectAnswered(name: string, history: readonly Answer[], lateTurns: readonly LateTurn[]): void {
  const { checks, byPolicy, failures } = summary(history);
  const { worstMs, worstOwnMs } = waits(history, { deadlineMs, lateTurns });
  const excess = Math.max(0, ...excesses(history, limit).map(({ count }) => count));
  console.log(
    `${name}: ${checks} checks, ${byPolicy} by policy; longest wait ${worstMs.toFixed(0)} ms ` +
      `(${worstOwnMs.toFixed(0)} without the machine's delays; deadline ${deadlineMs}); at most ${excess} beyond a limit of ${limit.limit}`,
  );
  expect(failures).toEqual([]);
  expect(worstOwnMs).toBeLessThanOrEqual(deadlineMs + 20);
}

describe.skipIf(whyMissing("redis"))("a Redis Cluster of 3 + 3 under steady load", () => {
  let cluster: RedisCluster;
  let limiters: Limiter[];
  const users: string[] = [];

  beforeAll(async () => {
    makeUrgent();
    cluster = await startCluster({ leaders: 3, replicasEach: 1, node: () => ({ urgent: true }) });
    limiters = Array.from({ length: 3 }, () =>
      createLimiter({ store: redisStore(cluster.url, { deadlineMs, rememberRefusals: false }), rules: [rule] }),
    );
    for (const found of (await usersByLeader(cluster, 2)).values()) users.push(...found);
    for (const limiter of limiters) await until("the store answers", () => limiter.ready());
  });
  afterAll(async () => {
    for (const limiter of limiters ?? []) await limiter.close();
    await cluster?.stop();
  });

  const load = () => startLoad({ limiters, users, perSecond: 300 });

  test("without a fault the store decides everything, and no window holds more than the limit", async () => {
    const { history, lateTurns, stop } = load();
    await sleep(2_000);
    await stop();
    expectAnswered("no fault", history, lateTurns);
    expect(excesses(history, limit)).toEqual([]);
    expect(summary(history).byPolicy).toBe(0);
    // The load asks for more than twice what passes.
    expect(summary(history).admitted).toBeGreaterThan(users.length * limit.limit);
  });

  test("a leader that is killed: its part is answered by policy until a replica leads, the other parts stay exact", async () => {
    const user = users[0]!;
    const { leader, replicas } = await leaderOf(cluster, user);
    const events: string[] = [];
    for (const event of ["degraded", "recovered"] as const) limiters[0]!.on(event, () => events.push(event));
    const { history, lateTurns, stop } = load();
    await sleep(1_000);
    const killedAtMs = performance.now();
    await leader.kill();
    const { atMs } = await promoted(replicas);
    await until("the end of the outage is told", async () => events.includes("recovered"));
    await stop();
    expectAnswered("leader killed -9", history, lateTurns);
    const exactMs = exactAfterMs(history, atMs);
    console.log(
      `leader killed -9: promoted ${(atMs - killedAtMs).toFixed(0)} ms after the kill, exact ${exactMs?.toFixed(0)} ms after that`,
    );
    expect(exactMs).toBeLessThanOrEqual(2_000);
    // A third of the checks failed and two thirds did not, for seconds: that is told as one outage.
    expect(events).toEqual(["degraded", "recovered"]);
    // What asynchronous replication lost, and no more: the store admits at most the limit again.
    for (const { count } of excesses(history, limit)) expect(count).toBeLessThanOrEqual(limit.limit);
    const theirs = await Promise.all(users.map(async (one) => (await leaderOf(cluster, one, replicas[0]!)).leader));
    const untouched = users.filter((_, i) => theirs[i] !== replicas[0]);
    expect(untouched).toHaveLength(4);
    const elsewhere = history.filter(({ key }) => untouched.includes(key));
    expect(elsewhere.length).toBeGreaterThan(500);
    expect(summary(elsewhere).byPolicy).toBe(0);
    expect(excesses(elsewhere, limit)).toEqual([]);
    await leader.restart();
    await whole(cluster);
  });

  test("a leader that is stopped and later continued: a replica leads meanwhile, and the old one does not lead again", async () => {
    const user = users[2]!;
    const { leader, replicas } = await leaderOf(cluster, user);
    const { history, lateTurns, stop } = load();
    await sleep(1_000);
    leader.pause();
    const pausedAtMs = performance.now();
    const { atMs } = await promoted(replicas);
    await sleep(1_500);
    const continuedAtMs = performance.now();
    leader.resume();
    await sleep(2_500);
    await stop();
    expectAnswered("leader stopped", history, lateTurns);
    const [exactMs, afterMs] = [exactAfterMs(history, atMs), exactAfterMs(history, continuedAtMs)];
    console.log(
      `leader stopped: promoted ${(atMs - pausedAtMs).toFixed(0)} ms after the stop, exact ${exactMs?.toFixed(0)} ms after that; ` +
        `continued: exact after ${afterMs?.toFixed(0)} ms`,
    );
    expect(exactMs).toBeLessThanOrEqual(2_000);
    for (const { count } of excesses(history, limit)) expect(count).toBeLessThanOrEqual(limit.limit);
    // Its own counters live no longer than a window: from then on no window holds more than the limit.
    const settled = history.filter(({ sentAtMs }) => sentAtMs > continuedAtMs + limit.windowMs);
    expect(settled.length).toBeGreaterThan(200);
    expect(excesses(settled, limit)).toEqual([]);
    await whole(cluster);
    expect(await leader.cli("ROLE")).toMatch(/^slave/);
  });

  test("the slot of a hot key moves to another leader: no error, no policy, no count lost", async () => {
    const total = 1_000;
    const rules: Rule[] = [
      { id: "moved", key: ["user"], algorithm: "rolling-window", limit: total, window: "1h", onStoreFailure: "deny" },
      { id: "beside", key: ["user"], algorithm: "fixed-window", limit: 100_000, window: "1d", onStoreFailure: "deny" },
    ];
    // Patient ones: here nothing may be left to a policy, however busy the machine is.
    const patient = Array.from({ length: 3 }, () =>
      createLimiter({ store: redisStore(cluster.url, { deadlineMs: 2_000, rememberRefusals: false }), rules }),
    );
    const user = users[4]!;
    const { leader } = await leaderOf(cluster, user);
    const to = (await leaderOf(cluster, users[0]!)).leader;
    const { history, lateTurns, stop } = startLoad({
      limiters: patient,
      users: [user],
      perSecond: 300,
      // Some with an id, so that their scripts have one key more.
      options: (n) => (n % 5 === 0 ? { id: `moving-${n}` } : {}),
    });
    await sleep(500);
    // Half of the keys are there and half are here, for a while.
    const between = async (): Promise<void> => void (await sleep(400));
    const started = performance.now();
    const moved = await moveSlot(cluster, { slot: slotOfUser(user), from: leader, to, between: upTo(6, between) });
    const movedMs = performance.now() - started;
    await sleep(500);
    await stop();
    const { admitted, byPolicy, failures } = summary(history);
    const { worstMs } = waits(history, { deadlineMs, lateTurns });
    const { checks } = await patient[0]!.peek({ user }, { cost: 0 });
    console.log(
      `slot moved: ${moved} keys in ${movedMs.toFixed(0)} ms; ${admitted} admitted, ${checks[0]!.remaining} left of ${total}; ` +
        `longest wait ${worstMs.toFixed(0)} ms`,
    );
    expect(failures).toEqual([]);
    expect(byPolicy).toBe(0);
    expect(moved).toBeGreaterThan(2);
    expect((await leaderOf(cluster, user)).leader).toBe(to);
    expect(checks.map(({ remaining }) => remaining)).toEqual([total - admitted, 100_000 - admitted]);
    for (const limiter of patient) await limiter.close();
  });

  test("a node that joins later is given a slot, and runs scripts that it was never sent before", async () => {
    const joined = await startRedis({ args: ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"] });
    const user = "late";
    const { leader } = await leaderOf(cluster, user);
    await joined.cli("CLUSTER", "MEET", "127.0.0.1", String(leader.port));
    await expect.poll(async () => await joined.cli("CLUSTER", "INFO"), { timeout: 10_000 }).toMatch(/cluster_state:ok/);
    for (let i = 0; i < 3; i++) expect((await limiters[0]!.check({ user })).degraded).toBeUndefined();
    await moveSlot(cluster, { slot: slotOfUser(user), from: leader, to: joined });
    expect(await joined.cli("INFO", "memory")).toMatch(/number_of_cached_scripts:0/);
    for (const limiter of limiters) expect((await limiter.check({ user })).degraded).toBeUndefined();
    expect(await joined.cli("INFO", "memory")).not.toMatch(/number_of_cached_scripts:0/);
    await moveSlot(cluster, { slot: slotOfUser(user), from: joined, to: leader });
    const id = (await joined.cli("CLUSTER", "MYID")).trim();
    await joined.stop();
    await Promise.all(cluster.nodes.map((server) => server.cli("CLUSTER", "FORGET", id).catch(() => "")));
    await whole(cluster);
  });

  test("checks of one turn for many keys are split by node, and each node gets its part in one call", async () => {
    // Without a rule under `local` it sends no heartbeat of its own: what it calls is the checks. The fleet's are on the servers' count.
    const rules: Rule[] = [{ ...rule, onStoreFailure: "deny" }];
    const limiter = createLimiter({ store: redisStore(cluster.url, { deadlineMs: 2_000 }), rules });
    await until("the store answers", () => limiter.ready());
    await Promise.all(cluster.nodes.map((server) => server.cli("CONFIG", "RESETSTAT")));
    const before = limiter.storeStats()!.calls;
    const decisions = await Promise.all(Array.from({ length: 90 }, (_, i) => limiter.check({ user: `many-${i}` })));
    expect(decisions.every(({ degraded, allowed }) => degraded === undefined && allowed)).toBe(true);
    expect(limiter.storeStats()!.calls - before).toBe(3);
    await limiter.close();
    const stats = await Promise.all(cluster.nodes.map((server) => server.cli("INFO", "commandstats")));
    const calls = stats
      .map((stat) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(stat)?.[1] ?? 0))
      .filter((count) => count > 0);
    console.log(`split by node: 90 keys in one turn, ${calls.join(" + ")} calls`);
    expect(calls).toHaveLength(3);
    expect(stats.join()).not.toMatch(/cmdstat_evalsha:[^\n]*failed_calls=[1-9]/);
  });

  test("every node is restarted, one after the other, and no check fails", async () => {
    const { history, lateTurns, stop } = load();
    await sleep(500);
    for (const node of cluster.nodes) {
      // A leader that restarts without its replica taking over would come back empty: nothing here is saved to disk.
      if ((await node.cli("ROLE")).startsWith("master")) await failOverTo((await replicasOf(cluster, node))[0]!);
      await node.restart();
      await whole(cluster);
    }
    const restartedAtMs = performance.now();
    await sleep(1_500);
    await stop();
    expectAnswered("every node restarted", history, lateTurns);
    expect(excesses(history, limit)).toEqual([]);
    expect(exactAfterMs(history, restartedAtMs)).toBe(0);
  }, 120_000);
});
