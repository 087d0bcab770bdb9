/** Reports of utilisation shared by the instances of one Redis. */
import { createLimiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const rule: Rule = { id: "by-report", key: [], algorithm: "load-shedding", signal: ["reported"] };
let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const limiterOf = () => createLimiter({ store: redisStore(redis.url), rules: [rule] });

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("what one instance is told, another sheds by, until the report ends", async () => {
  const [teller, hearer] = [limiterOf(), limiterOf()];
  expect(await teller.reportUtilisation(1, { source: "db-1", ttlMs: 60_000 })).toBe(true);
  await until(async () => {
    await hearer.check({});
    return hearer.sheddingStats()[0]?.utilisation === 1;
  });
  expect(await teller.reportUtilisation(0.25, { source: "db-1", ttlMs: 1_500 })).toBe(true);
  await until(async () => {
    await hearer.check({});
    return hearer.sheddingStats()[0]?.utilisation === 0.25;
  });
  await until(async () => {
    await hearer.check({});
    return hearer.sheddingStats()[0]?.utilisation === 0;
  });
  await Promise.all([teller.close(), hearer.close()]);
});

test("what stands in Redis is bounded and ends by itself", async () => {
  const limiter = limiterOf();
  await limiter.reportUtilisation(0.5, { source: 'a "quoted" source', key: "eu,db", ttlMs: 60_000 });
  const [name] = (await redis.cli("KEYS", "*utilisation")).split("\n");
  expect(Number(await redis.cli("PTTL", name!))).toBeGreaterThan(0);
  expect(await redis.cli("HLEN", name!)).toBe("1");
  await limiter.close();
});

test("without Redis a report holds where it was made, and nothing throws", async () => {
  const limiter = createLimiter({ store: redisStore("redis://127.0.0.1:1", { deadlineMs: 50 }), rules: [rule] });
  expect(await limiter.reportUtilisation(0.9, { source: "db-1" })).toBe(false);
  await limiter.check({});
  expect(limiter.sheddingStats()[0]).toMatchObject({ utilisation: 0.9 });
  await limiter.close();
});
