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

test("callers that fill the table neither stop an instance's own reports nor make writing dear", async () => {
  const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000 }), rules: [rule] });
  const report = async (i: number): Promise<boolean> =>
    await limiter.reportUtilisation(0.1, { source: `s${i}`, ttlMs: 300_000 });
  await Promise.all(Array.from({ length: 1_100 }, (_, i) => report(i).catch(String)));
  const [name] = (await redis.cli("KEYS", "*utilisation")).split("\n");
  expect(await redis.cli("HLEN", name!)).toBe("1000");
  await redis.cli("CONFIG", "RESETSTAT");
  await limiter.reportUtilisation(0.2, { source: "s1" });
  expect(await redis.cli("INFO", "commandstats")).not.toContain("cmdstat_hgetall:");
  const tuned: Rule = {
    id: "tuned",
    key: [],
    algorithm: "token-bucket",
    limit: 100,
    window: "1s",
    adapt: { signal: "event-loop", target: 0.8, min: 20, max: 200 },
  };
  const adaptive = createLimiter({ store: redisStore(redis.url), rules: [tuned] });
  await until(() => adaptive.adaptiveStats()[0]?.utilisation !== undefined);
  await until(async () => (await redis.cli("HLEN", name!)) === "1001");
  expect(() => adaptive.reportUtilisation(1, { source: "forged", key: "~event-loop" })).toThrow(
    /what instances report/,
  );
  await Promise.all([limiter.close(), adaptive.close()]);
});

test("one report that cannot be taken does not hide the others", async () => {
  const limiter = limiterOf();
  await limiter.reportUtilisation(0.1, { source: "first", ttlMs: 60_000 });
  const [name] = (await redis.cli("KEYS", "*utilisation")).split("\n");
  await redis.cli("DEL", name!);
  const endsMs = Date.now() + 60_000;
  await redis.cli("HSET", name!, JSON.stringify(["x".repeat(300), ""]), `0.9 ${endsMs}`);
  await redis.cli("HSET", name!, JSON.stringify(["other", ""]), `0.4 ${endsMs}`);
  await until(async () => {
    await limiter.check({});
    return limiter.sheddingStats()[0]?.utilisation === 0.4;
  });
  await redis.cli("DEL", name!);
  await limiter.close();
});

test("without Redis a report holds where it was made, and nothing throws", async () => {
  const limiter = createLimiter({ store: redisStore("redis://127.0.0.1:1", { deadlineMs: 50 }), rules: [rule] });
  expect(await limiter.reportUtilisation(0.9, { source: "db-1" })).toBe(false);
  await limiter.check({});
  expect(limiter.sheddingStats()[0]).toMatchObject({ utilisation: 0.9 });
  await limiter.close();
});
