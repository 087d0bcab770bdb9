/**
 * Regions on real Redis servers, home 100 ms away each way: cut off, restarted, failing over, gone. Windows of an hour, so
 * that only counts matter and not the machine's pace.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { eventually } from "../configuration/instance.js";
import { startSentinels } from "../harness/redis-sentinels.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";

const LIMIT = 36_000;

function ruleOf(more: Partial<Rule> = {}): Rule {
  const rule = { id: "all", key: ["user"], algorithm: "rolling-window", limit: LIMIT, window: "1h", scope: "global" };
  return { ...rule, onStoreFailure: "deny", ...more } as Rule;
}

interface Uses {
  covered: number;
  byPolicy: number;
  /** The largest limit that a decision by policy stated. */
  stated: number;
}

async function use(limiter: Limiter, times: number, user = "u"): Promise<Uses> {
  const uses = { covered: 0, byPolicy: 0, stated: 0 };
  for (let i = 0; i < times; i += 100) {
    const asked = Array.from({ length: Math.min(100, times - i) }, () => limiter.check({ user }));
    for (const { allowed, degraded, checks } of await Promise.all(asked)) {
      if (degraded !== undefined && degraded !== "deny") uses.stated = Math.max(uses.stated, checks[0]!.limit!);
      if (!allowed) continue;
      if (degraded === undefined) uses.covered++;
      else uses.byPolicy++;
    }
  }
  return uses;
}

/** Until home is empty: no unit is left anywhere but in hands that were lost. */
async function drain(...limiters: readonly Limiter[]): Promise<number> {
  let used = 0;
  for (let found = 1; found > 0; used += found) {
    found = 0;
    for (const limiter of limiters) found += (await use(limiter, 500)).covered;
  }
  return used;
}

describe.skipIf(whyMissing("redis"))("regions", () => {
  async function open(rule: Rule, { homeUrl, deadlineMs = 5_000 }: { homeUrl?: string; deadlineMs?: number } = {}) {
    const limiters: Limiter[] = [];
    const home = await startRedis();
    const stores = await Promise.all([startRedis(), startRedis()]);
    const far = await startTcpFaultProxy({ upstreamPort: home.port, latencyMs: 200 });
    const start = (region: string, store: string, globalStore: string): Limiter => {
      const limiter = createLimiter({
        rules: [rule],
        region,
        store: redisStore(store, { deadlineMs: 30_000 }),
        globalStore: redisStore(globalStore, { deadlineMs }),
      });
      limiters.push(limiter);
      return limiter;
    };
    const end = async (): Promise<void> => {
      await Promise.all(limiters.map((limiter) => limiter.close()));
      for (const server of [far, home, ...stores]) await server.stop();
    };
    const eu = start("eu", stores[0].url, homeUrl ?? far.url);
    const us = start("us", stores[1].url, homeUrl ?? home.url);
    return { eu, us, home, far, stores, [Symbol.asyncDispose]: end };
  }

  test("two regions get exactly the limit, and a region's units serve most of its requests", async () => {
    await using world = await open(ruleOf({ limit: 2_000 }));
    const { eu, us } = world;
    expect(await drain(eu, us)).toBe(2_000);
    const { requests, waited } = eu.regionStats()!;
    expect(waited).toBeLessThan(requests);
  });

  test("cut off under local: units in hand, then no more than the stated share; the rest of the world has the limit", async () => {
    await using world = await open(ruleOf({ onStoreFailure: "local" }), { deadlineMs: 1_000 });
    const { eu, us, far } = world;
    await eventually("eu has units", async () => (await use(eu, 100)).covered === 100);
    far.blackhole(true);
    const cut = { covered: 0, byPolicy: 0, stated: 0 };
    await eventually("eu has used what it may by policy", async () => {
      const { covered, byPolicy, stated } = await use(eu, 500);
      cut.covered += covered;
      cut.byPolicy += byPolicy;
      cut.stated = Math.max(cut.stated, stated);
      return stated > 0 && byPolicy === 0;
    });
    expect(cut.byPolicy).toBe(cut.stated);
    expect(cut.stated).toBeLessThanOrEqual(LIMIT);
    expect(cut.covered).toBeLessThanOrEqual(LIMIT);
    expect(eu.regionStats()!.isCutOff).toBe(true);
    expect(await use(us, 3_000)).toMatchObject({ covered: 3_000, byPolicy: 0 });
    far.blackhole(false);
    far.cut();
    await eventually("eu asks home again", async () => {
      await eu.check({ user: "u" });
      return !eu.regionStats()!.isCutOff;
    });
    // What was used by policy stays beside the limit; what was used of units is within it.
    expect((await use(eu, 100)).byPolicy).toBe(0);
  });

  test("home that restarts empty: what was used and is held before passes beside the limit, and no more", async () => {
    await using world = await open(ruleOf({ limit: 1_000 }));
    const { eu, us, home } = world;
    const before = (await use(eu, 300)).covered + (await use(us, 300)).covered;
    expect(before).toBe(600);
    await home.restart();
    await eventually("both regions are decided from units again", async () => {
      const found = await Promise.all([eu, us].map((limiter) => use(limiter, 1, "probe")));
      return found.every(({ covered }) => covered === 1);
    });
    expect(before + (await drain(eu, us))).toBeLessThanOrEqual(2_000);
    expect((await use(eu, 10)).covered).toBe(0);
  });

  test("a region's store that is gone: its traffic arrives elsewhere, within the same limit", async () => {
    await using world = await open(ruleOf({ limit: 1_000 }));
    const { eu, us, stores } = world;
    const before = (await use(eu, 300)).covered;
    await stores[0].kill();
    const after = await drain(us);
    expect(before + after).toBeLessThanOrEqual(1_000);
    // Lost until their end: what eu held, and not more.
    expect(before + after).toBeGreaterThan(500);
  });

  test("home fails over by Sentinel: replicated uses still count", async () => {
    await using set = await startSentinels({ replicas: 1 });
    await using world = await open(ruleOf({ limit: 1_000 }), { homeUrl: set.url });
    const { eu, us } = world;
    const before = (await use(eu, 300)).covered + (await use(us, 100)).covered;
    expect(before).toBe(400);
    await set.leader.cli("WAIT", "1", "10000");
    await set.leader.kill();
    await eventually("the replica leads", () => set.isNamed(set.replicas[0]!));
    await eventually("both regions are decided from units again", async () => {
      const found = await Promise.all([eu, us].map((limiter) => use(limiter, 1, "probe")));
      return found.every(({ covered }) => covered === 1);
    });
    expect(before + (await drain(eu, us))).toBe(1_000);
  });
});
