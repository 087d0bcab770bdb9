/**
 * What becomes of counters when a rule is edited while they run: numbers carry over, for every algorithm, in memory and on Redis.
 * Windows are hours and nothing waits, so only the edits change what is left.
 */
import { createLimiter, type Limiter, memoryStore, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

let redis: RedisServer | undefined;
beforeAll(async () => {
  if (whyMissing("redis") === undefined) redis = await startRedis();
});
afterAll(() => redis?.stop());

const stores = [
  { store: "memory", missing: undefined, open: () => memoryStore() },
  { store: "Redis", missing: whyMissing("redis"), open: () => redisStore(redis!.url, { deadlineMs: 2_000 }) },
];

const algorithms: { name: string; numbers: object; longer: object; shorter: object }[] = [
  ...["token-bucket", "fixed-window", "sliding-counter", "gcra"].map((algorithm) => ({
    name: algorithm,
    numbers: { algorithm, window: "2h" },
    longer: { window: "4h" },
    shorter: { window: "1h" },
  })),
  ...["sorted-set", "packed"].map((storage) => ({
    name: `rolling-window, ${storage}`,
    numbers: { algorithm: "rolling-window", storage, window: "2h" },
    // Beyond 2.3 hours a packed entry takes four bytes instead of three: the log is written anew.
    longer: { window: "40h" },
    shorter: { window: "1h" },
  })),
  {
    name: "concurrency",
    numbers: { algorithm: "concurrency", ttl: "2h" },
    longer: { ttl: "4h" },
    shorter: { ttl: "1h" },
  },
];

let made = 0;

/** A rule of its own for each test: all share one Redis. */
async function edited(open: (typeof stores)[number]["open"], numbers: object, limit: number) {
  const id = `rule-${++made}`;
  const ruleOf = (more: object) => ({ id, key: ["user"], ...numbers, limit, ...more }) as unknown as Rule;
  const limiter = createLimiter({ rules: [ruleOf({})], store: open() });
  await limiter.ready();
  return {
    limiter,
    edit: (more: object) => limiter.setRules([ruleOf(more)]),
    replace: (other: object) => limiter.setRules([{ id, key: ["user"], limit, ...other } as unknown as Rule]),
  };
}

/** How many of `asked` requests are admitted. */
async function admitted(limiter: Limiter, asked: number): Promise<number> {
  let count = 0;
  for (let i = 0; i < asked; i++) if ((await limiter.check({ user: "ann" })).allowed) count++;
  return count;
}

describe.each(stores)("in $store", ({ open, missing }) => {
  describe.skipIf(missing).each(algorithms)("$name:", ({ numbers, longer, shorter }) => {
    test("a raised limit helps at once, by exactly the difference", async () => {
      const { limiter, edit } = await edited(open, numbers, 10);
      expect(await admitted(limiter, 12)).toBe(10);
      edit({ limit: 14 });
      expect((await limiter.peek({ user: "ann" })).remaining).toBe(4);
      expect(await admitted(limiter, 20)).toBe(4);
      await limiter.close();
    });

    test("a lowered limit holds at once: what was used counts against it", async () => {
      const { limiter, edit } = await edited(open, numbers, 10);
      expect(await admitted(limiter, 6)).toBe(6);
      edit({ limit: 8 });
      expect(await admitted(limiter, 20)).toBe(2);
      edit({ limit: 5 });
      expect(await admitted(limiter, 20)).toBe(0);
      expect((await limiter.peek({ user: "ann" })).remaining).toBe(0);
      edit({ limit: 9 });
      expect(await admitted(limiter, 20)).toBe(1);
      await limiter.close();
    });

    test("nobody gets a fresh quota by an edit of the window, longer, shorter or back and forth", async () => {
      const { limiter, edit } = await edited(open, numbers, 10);
      expect(await admitted(limiter, 12)).toBe(10);
      for (const more of [longer, shorter, {}, longer, {}, shorter]) {
        edit(more);
        expect(await admitted(limiter, 3)).toBe(0);
      }
      await limiter.close();
    });

    test("limit and window edited together, with traffic in between, admit no more than the largest limit", async () => {
      const { limiter, edit } = await edited(open, numbers, 10);
      let count = await admitted(limiter, 3);
      for (const more of [longer, { ...shorter, limit: 12 }, { limit: 11 }, { ...longer, limit: 9 }, { limit: 12 }]) {
        edit(more);
        count += await admitted(limiter, 4);
      }
      expect(count).toBe(12);
      await limiter.close();
    });

    test("mode off and on again, and shadow, keep the count", async () => {
      const { limiter, edit } = await edited(open, numbers, 10);
      expect(await admitted(limiter, 7)).toBe(7);
      edit({ mode: "off" });
      expect(await admitted(limiter, 5)).toBe(5);
      edit({ mode: "shadow" });
      expect(await admitted(limiter, 1)).toBe(1);
      edit({});
      expect(await admitted(limiter, 5)).toBe(2);
      await limiter.close();
    });

    test("another algorithm starts anew; back at the old one, its count is found again", async () => {
      const { limiter, edit, replace } = await edited(open, numbers, 10);
      expect(await admitted(limiter, 12)).toBe(10);
      const other = numbers === algorithms[0]!.numbers ? "gcra" : "token-bucket";
      replace({ algorithm: other, window: "2h" });
      expect(await admitted(limiter, 12)).toBe(10);
      edit({});
      expect(await admitted(limiter, 2)).toBe(0);
      await limiter.close();
    });
  });

  describe.skipIf(missing)("beside limit and window:", () => {
    test("a raised burst helps a gcra rule at once", async () => {
      const { limiter, edit } = await edited(open, { algorithm: "gcra", window: "2h", burst: 5 }, 10);
      expect(await admitted(limiter, 9)).toBe(5);
      edit({ burst: 8 });
      expect(await admitted(limiter, 9)).toBe(3);
      await limiter.close();
    });

    test("a bucket's refill may be spelled otherwise without filling the bucket", async () => {
      const { limiter, replace } = await edited(open, { algorithm: "token-bucket", window: "2h" }, 10);
      expect(await admitted(limiter, 12)).toBe(10);
      replace({ algorithm: "token-bucket", refill: { amount: 3, every: "7h" } });
      expect(await admitted(limiter, 3)).toBe(0);
      await limiter.close();
    });

    test("an override that comes or goes changes the limit of its key, not the count", async () => {
      const { limiter, edit } = await edited(open, { algorithm: "fixed-window", window: "2h" }, 10);
      expect(await admitted(limiter, 12)).toBe(10);
      edit({ overrides: [{ match: { user: "ann" }, limit: 13 }] });
      expect(await admitted(limiter, 9)).toBe(3);
      edit({});
      expect(await admitted(limiter, 9)).toBe(0);
      await limiter.close();
    });

    test("a candidate that is promoted does not bring its own counter along", async () => {
      const numbers = { algorithm: "fixed-window", window: "2h" };
      const { limiter, edit } = await edited(open, { ...numbers, candidate: { limit: 12 } }, 10);
      expect(await admitted(limiter, 11)).toBe(10);
      edit({ limit: 12, candidate: undefined });
      expect(await admitted(limiter, 9)).toBe(2);
      await limiter.close();
    });
  });
});
