/** Blocks that grow (`blockFor: [1h, 2h]`), seen by three instances of one Redis. */
import { Redis } from "ioredis";
import { createLimiter, type Rule } from "sluice";
import { blockKeysPattern } from "sluice/internal";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const HOUR_MS = 3_600_000;
const rule: Rule = {
  id: "login",
  key: ["ip"],
  algorithm: "rolling-window",
  limit: 1,
  window: "365d",
  blockFor: ["1h", "2h"],
};

describe.skipIf(whyMissing("redis"))("blocks over a fleet", () => {
  let redis: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
  });
  afterAll(async () => {
    client.disconnect();
    await redis?.stop();
  });

  const instance = () => createLimiter({ store: redisStore(redis.url, { deadlineMs: 10_000 }), rules: [rule] });
  const blockKey = async (): Promise<string> => (await client.keys(blockKeysPattern("")))[0]!;

  test("a burst of refusals begins one block, whichever instances refuse; the next block is the longer one for all", async () => {
    const fleet = [instance(), instance(), instance()];
    const asker = { ip: "203.0.113.7" };
    expect((await fleet[0]!.check(asker)).allowed).toBe(true);
    const burst = await Promise.all(Array.from({ length: 60 }, (_, i) => fleet[i % 3]!.check(asker)));
    expect(burst.filter(({ allowed }) => allowed)).toEqual([]);
    const key = await blockKey();
    const [untilMs, lengthMs, level] = (await client.get(key))!.split(" ").map(Number);
    expect([lengthMs, level]).toEqual([HOUR_MS, 1]);

    // An hour passes.
    await client.set(key, `${untilMs! - HOUR_MS - 1} ${HOUR_MS} 1`, "PX", HOUR_MS);
    // Those who remember the refusal need not ask.
    const later = [instance(), instance(), instance()];
    const again = await Promise.all(Array.from({ length: 60 }, (_, i) => later[i % 3]!.check(asker)));
    expect(again.filter(({ allowed, retryAfterMs }) => allowed || retryAfterMs < HOUR_MS)).toEqual([]);
    expect((await client.get(key))!.split(" ").slice(1).map(Number)).toEqual([2 * HOUR_MS, 2]);

    const last = instance();
    await last.reset("login", asker);
    expect((await last.check(asker)).allowed).toBe(true);
    await Promise.all([...fleet, ...later, last].map((limiter) => limiter.close()));
  });
});
