/** Two programs with the same rules on one Redis: the prefix of an ioredis client, or a database number, keeps their counters apart. */
import { Redis } from "ioredis";
import { createLimiter, type Limiter, type Rule } from "sluice";
import { type RedisClient, redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const counted = { key: ["user"], limit: 2, window: "365d" } as const;
const rules: Rule[] = [
  { ...counted, id: "bucket", algorithm: "token-bucket" },
  { ...counted, id: "rolling", algorithm: "rolling-window", blockFor: "1h" },
  { id: "places", key: ["user"], algorithm: "concurrency", limit: 2, ttl: "1h" },
];
const user = { user: "ann" };

describe.skipIf(whyMissing("redis"))("two programs on one Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis?.stop();
  });

  test("with a prefix each counts, blocks, leases, gives back and resets by itself, and every key has its prefix", async () => {
    const clients = ["shop:", "blog:"].map((keyPrefix) => clientOf({ url: redis.url, keyPrefix }));
    const [shop, blog] = clients.map(limiterOn) as [Limiter, Limiter];
    try {
      expect(await Promise.all([shop.ready(), blog.ready()])).toEqual([true, true]);
      await exhaust(shop);
      const decision = await blog.check(user, { id: "order-1" });
      expect(decision).toMatchObject({ allowed: true, remaining: 1 });
      expect(await blog.check(user, { id: "order-1" })).toMatchObject({ allowed: true, remaining: 1 });
      await decision.lease!.release();
      await blog.refund(decision);
      await exhaust(blog);

      await Promise.all(rules.map(({ id }) => shop.reset(id, user)));
      expect(await shop.check(user)).toMatchObject({ allowed: true, remaining: 1 });
      expect(await blog.check(user)).toMatchObject({ allowed: false });
      const keys = (await redis.cli("KEYS", "*")).split("\n");
      expect(keys.filter((key) => !/^(shop|blog):sluice:1:/.test(key))).toEqual([]);
    } finally {
      await Promise.all([shop.close(), blog.close()]);
      for (const client of clients) client.disconnect();
    }
  });

  test("a database number does the same by URL", async () => {
    const [first, second] = [2, 3].map((number) => limiterOn(`${redis.url}/${number}`)) as [Limiter, Limiter];
    try {
      expect(await Promise.all([first.ready(), second.ready()])).toEqual([true, true]);
      await exhaust(first);
      expect(await second.check(user)).toMatchObject({ allowed: true, remaining: 1 });
    } finally {
      await Promise.all([first.close(), second.close()]);
    }
  });
});

function clientOf({ url, keyPrefix }: { url: string; keyPrefix: string }): Redis {
  return new Redis(url, { enableOfflineQueue: false, autoResendUnfulfilledCommands: false, keyPrefix });
}

function limiterOn(target: string | RedisClient): Limiter {
  return createLimiter({ store: redisStore(target, { deadlineMs: 20_000 }), rules });
}

/** Two pass, the third is refused, and begins a block. */
async function exhaust(limiter: Limiter): Promise<void> {
  const decisions = [await limiter.check(user), await limiter.check(user), await limiter.check(user)];
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  expect(decisions[2]!.degraded).toBeUndefined();
}
