/** Refusals that an instance remembers: what they spare Redis, and that what another instance frees is heard of. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster } from "../harness/redis-cluster.js";
import { startRedis } from "../harness/redis-server.js";

const rule: Rule = {
  id: "r",
  key: ["user"],
  algorithm: "fixed-window",
  limit: 1,
  window: "365d",
  onStoreFailure: "deny",
};
const USERS = Array.from({ length: 200 }, (_, i) => `user-${i}`);
/** Longer than a refusal holds without word of what others free. */
const UNHEARD_MS = 1_100;

describe.skipIf(whyMissing("redis")).each([
  ["one Redis", startRedis],
  ["a Redis Cluster", startCluster],
])("refusals on %s", (_, start) => {
  let servers: { readonly url: string; stop(): Promise<unknown> };
  const limiters: Limiter[] = [];
  /** Each test has counters of its own. */
  let rules = 0;

  beforeAll(async () => {
    servers = await start();
  });
  beforeEach(() => void rules++);
  afterAll(async () => {
    for (const limiter of limiters) await limiter.close();
    await servers?.stop();
  });

  function instance(): Limiter {
    const store = redisStore(servers.url, { deadlineMs: 60_000 });
    const limiter = createLimiter({ store, rules: [{ ...rule, id: `r${rules}` }] });
    limiters.push(limiter);
    return limiter;
  }

  const refusedOf = async (limiter: Limiter): Promise<number> => {
    const decisions = await Promise.all(USERS.map((user) => limiter.check({ user })));
    return decisions.filter(({ allowed }) => !allowed).length;
  };

  test("a refusal that was under way during a refund here is not remembered beyond it", async () => {
    const limiter = instance();
    await limiter.ready();
    for (const user of USERS.slice(0, 20)) {
      const decision = await limiter.check({ user });
      const asked = limiter.check({ user });
      // The check is on its way, and Redis answers both in one go.
      await new Promise(process.nextTick);
      const refund = limiter.refund(decision);
      expect([(await asked).allowed, await refund]).toEqual([false, true]);
      expect((await limiter.check({ user })).allowed).toBe(true);
    }
  });

  test("a refusal is asked for once; from then on Redis is only asked what was freed", async () => {
    const limiter = instance();
    await refusedOf(limiter);
    await refusedOf(limiter);
    await sleep(UNHEARD_MS);
    // Word of what was freed begins here, and what was remembered before it is asked for once more.
    await refusedOf(limiter);
    await sleep(100);
    await refusedOf(limiter);
    const before = limiter.storeStats()!.calls;
    let looks = 0;
    const endMs = performance.now() + 2 * UNHEARD_MS;
    for (; performance.now() < endMs; looks++) {
      expect(await refusedOf(limiter)).toBe(USERS.length);
      await sleep(100);
    }
    const calls = limiter.storeStats()!.calls - before;
    console.log(`${looks * USERS.length} refusals: ${calls} calls`);
    expect(calls).toBeLessThanOrEqual(looks);
  });

  test("counters that another instance resets, refunds or gives back are free here, too, and the others stay refused", async () => {
    const [here, there] = [instance(), instance()];
    await there.check({ user: "user-0" });
    await there.check({ user: "user-1" });
    const charged = await there.check({ user: "user-2" });
    expect(await refusedOf(here)).toBe(3);
    expect(await refusedOf(here)).toBe(USERS.length);
    await sleep(UNHEARD_MS);
    expect(await refusedOf(here)).toBe(USERS.length);
    await sleep(100);
    expect(await refusedOf(here)).toBe(USERS.length);
    await there.reset(there.rules[0]!.id, { user: "user-0" });
    expect(await there.giveBack({ user: "user-1" })).toBe(true);
    expect(await there.refund(charged)).toBe(true);
    for (const user of ["user-0", "user-1", "user-2"]) {
      await expect.poll(async () => (await here.check({ user })).allowed, { timeout: 60_000 }).toBe(true);
    }
    expect(await refusedOf(here)).toBe(USERS.length);
  });
});
