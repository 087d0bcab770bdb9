/** A leader watched by three Sentinels: killed, and stopped, under steady load; judged afterwards. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { until } from "../harness/redis-cluster.js";
import { type SentinelSet, startSentinels } from "../harness/redis-sentinels.js";
import type { RedisServer } from "../harness/redis-server.js";
import { makeUrgent } from "../harness/server-process.js";
import { promoted } from "./cluster-steps.js";
import { exactAfterMs, excesses, summary, waits } from "./judge.js";
import { startLoad } from "./steady-load.js";

const deadlineMs = 200;
const limit = { limit: 20, windowMs: 1_000 };
const rule: Rule = { id: "hot", key: ["user"], algorithm: "rolling-window", limit: 20, window: "1s" };

describe.skipIf(whyMissing("redis"))("a leader watched by Sentinels, under steady load", () => {
  let set: SentinelSet;
  let limiters: Limiter[];

  beforeAll(async () => {
    makeUrgent();
    set = await startSentinels({ node: { urgent: true } });
    limiters = Array.from({ length: 2 }, () =>
      createLimiter({ store: redisStore(set.url, { deadlineMs, rememberRefusals: false }), rules: [rule] }),
    );
    for (const limiter of limiters) await until("the store answers", () => limiter.ready());
  });
  afterAll(async () => {
    for (const limiter of limiters ?? []) await limiter.close();
    await set?.stop();
  });

  const servers = (): RedisServer[] => [set.leader, ...set.replicas];
  const roles = (): Promise<string[]> => Promise.all(servers().map((server) => server.cli("ROLE").catch(() => "gone")));

  test.each(["killed -9", "stopped"] as const)(
    "%s: a replica leads, and checks are exact again within two seconds",
    async (how) => {
      const now = await roles();
      const leader = servers()[now.findIndex((role) => role.startsWith("master"))]!;
      const others = servers().filter((_, i) => now[i]!.startsWith("slave"));
      const load = startLoad({ limiters, users: ["a", "b", "c", "d"], perSecond: 200 });
      await sleep(1_000);
      const lostAtMs = performance.now();
      if (how === "stopped") leader.pause();
      else await leader.kill();
      const { server, atMs: promotedAtMs } = await promoted(others);
      // A Sentinel may name the old leader until it has heard of the new one.
      await until("every Sentinel names the new leader", () => set.isNamed(server));
      const atMs = performance.now();
      await sleep(2_500);
      if (how === "stopped") leader.resume();
      const resumedAtMs = performance.now();
      await sleep(1_500);
      await load.stop();

      const { history, lateTurns } = load;
      const exactMs = exactAfterMs(history, atMs);
      const { worstOwnMs } = waits(history, { deadlineMs, lateTurns });
      const excess = Math.max(0, ...excesses(history, limit).map(({ count }) => count));
      const { checks, byPolicy, failures } = summary(history);
      console.log(
        `Sentinel, leader ${how}: ${checks} checks, ${byPolicy} by policy; promoted ${(promotedAtMs - lostAtMs).toFixed(0)} ms after the loss, ` +
          `named by every Sentinel ${(atMs - promotedAtMs).toFixed(0)} ms later, exact ${exactMs?.toFixed(0)} ms after that; longest wait ${worstOwnMs.toFixed(0)} ms of ${deadlineMs}; at most ${excess} beyond the limit`,
      );
      expect(failures).toEqual([]);
      expect(worstOwnMs).toBeLessThanOrEqual(deadlineMs + 20);
      expect(exactMs).toBeLessThanOrEqual(2_000);
      expect(excess).toBeLessThanOrEqual(limit.limit);
      expect(exactAfterMs(history, resumedAtMs)).toBe(0);
      if (how === "killed -9") await leader.restart();
      await until("one leads and the others follow", async () => {
        const found = await roles();
        return found.filter((role) => role.startsWith("master")).length === 1 && found.every((role) => role !== "gone");
      });
    },
    60_000,
  );
});
