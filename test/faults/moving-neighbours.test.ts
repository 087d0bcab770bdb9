/**
 * Keys of one slot that is migrating, some of which have a counter and some do not, in one call: Redis sends a client on to the other node
 * because of the first, and there the counters of the rest must not begin anew.
 */
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { startCluster, until } from "../harness/redis-cluster.js";
import { leaderOf, moveSlot, slotOfUser, upTo } from "./cluster-steps.js";

const LIMIT = 3;
const forms = ["fixed-window", "token-bucket", "rolling-window"] as const;

/** Users whose counters lie in one slot. */
function neighbours(count: number): string[] {
  const slot = slotOfUser("u0");
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) if (slotOfUser(`u${i}`) === slot) found.push(`u${i}`);
  return found;
}

describe.skipIf(whyMissing("redis"))("a slot that is migrating", () => {
  test.each(forms)(
    "%s: one call over new and used-up counters of it admits nothing beyond a limit",
    async (algorithm) => {
      await using cluster = await startCluster();
      const rule = { id: "r", key: ["user"], algorithm, limit: LIMIT, window: "1d", onStoreFailure: "deny" } as Rule;
      const store = redisStore(cluster.url, { deadlineMs: 60_000, rememberRefusals: false });
      const limiter = createLimiter({ store, rules: [rule] });
      try {
        await until("the store answers", () => limiter.ready());
        const [old, ...young] = neighbours(3) as [string, ...string[]];
        for (let n = 0; n < LIMIT; n++) expect((await limiter.check({ user: old })).allowed).toBe(true);
        const { leader } = await leaderOf(cluster, old);
        const to = cluster.leaders.find((one) => one !== leader)!;
        const asked: boolean[] = [];
        // While the old counter is here, and when it has moved. A new one is the first of each call.
        const ask = async (): Promise<void> => {
          const first = young.pop()!;
          const [, found] = await Promise.all([limiter.check({ user: first }), limiter.check({ user: old })]);
          asked.push(found.allowed);
        };
        await moveSlot(cluster, { slot: slotOfUser(old), from: leader, to, between: upTo(2, ask) });
        expect(asked).toEqual([false, false]);
        expect(await limiter.peek({ user: old })).toMatchObject({ allowed: false, remaining: 0 });
      } finally {
        await limiter.close();
      }
    },
  );
});
