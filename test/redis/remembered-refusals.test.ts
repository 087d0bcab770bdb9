/** Refusals that an instance remembers: what they spare Redis, and that what another instance frees is heard of. */
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterEach, describe, expect, test } from "vitest";
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
  const open: { stop(): Promise<unknown> }[] = [];
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.stop();
  });

  async function fleet(count: number, rules: readonly Rule[] = [rule]): Promise<Limiter[]> {
    const servers = await start();
    open.push(servers);
    return Array.from({ length: count }, () => {
      const limiter = createLimiter({ store: redisStore(servers.url, { deadlineMs: 60_000 }), rules });
      open.push({ stop: () => limiter.close() });
      return limiter;
    });
  }

  const refusedOf = async (limiter: Limiter): Promise<number> => {
    const decisions = await Promise.all(USERS.map((user) => limiter.check({ user })));
    return decisions.filter(({ allowed }) => !allowed).length;
  };

  test("a refusal is asked for once; from then on Redis is only asked what was freed", async () => {
    const [limiter] = (await fleet(1)) as [Limiter];
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

  test.each([
    ["resets", async (other: Limiter) => await other.reset("r", { user: "user-0" })],
    ["refunds", async (other: Limiter, given: unknown) => void (await other.refund(given as never))],
    ["gives back", async (other: Limiter) => void (await other.giveBack({ user: "user-0" }))],
  ])("a counter that another instance %s is free here, too, and the others stay refused", async (_name, free) => {
    const [here, there] = (await fleet(2)) as [Limiter, Limiter];
    const first = await there.check({ user: "user-0" });
    expect(await refusedOf(here)).toBe(1);
    expect(await refusedOf(here)).toBe(USERS.length);
    await sleep(UNHEARD_MS);
    expect(await refusedOf(here)).toBe(USERS.length);
    await sleep(100);
    expect(await refusedOf(here)).toBe(USERS.length);
    await free(there, first);
    await expect.poll(async () => (await here.check({ user: "user-0" })).allowed, { timeout: 60_000 }).toBe(true);
    expect(await refusedOf(here)).toBe(USERS.length);
  });
});
