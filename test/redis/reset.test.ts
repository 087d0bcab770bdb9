/** A counter that is reset: what was charged before is gone, and no refund of it touches what came after. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const counted = { key: ["user"], limit: 3, window: "365d" } as const;
const rules: Rule[] = [
  { ...counted, id: "token-bucket", algorithm: "token-bucket" },
  { ...counted, id: "gcra", algorithm: "gcra" },
  { ...counted, id: "fixed-window", algorithm: "fixed-window" },
  { ...counted, id: "sliding-counter", algorithm: "sliding-counter" },
  { ...counted, id: "sorted-set", algorithm: "rolling-window", storage: "sorted-set" },
  { ...counted, id: "packed", algorithm: "rolling-window", storage: "packed" },
].map((rule) => ({ ...rule, match: { only: rule.id } }) as Rule);

/** Where all steps fall into one millisecond of Redis, a counter cannot tell them apart: some of so many do. */
const TRIES = 50;

describe.skipIf(whyMissing("redis"))("a reset on Redis", () => {
  let redis: RedisServer;
  let limiter: Limiter;
  beforeAll(async () => {
    redis = await startRedis();
    limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 60_000 }), rules });
  });
  afterAll(async () => {
    await limiter?.close();
    await redis?.stop();
  });

  test.each(rules)(
    "$id: a refund of a charge before it gives back nothing that was charged at once after it",
    async ({ id }) => {
      const left: number[] = [];
      for (let i = 0; i < TRIES; i++) {
        const request = { only: id, user: `user-${i}` };
        const before = await limiter.check(request, { cost: 2 });
        await limiter.reset(id, request);
        await limiter.check(request, { cost: 2 });
        await limiter.refund(before);
        left.push((await limiter.peek(request, { cost: 0 })).remaining!);
      }
      expect(left).toEqual(Array.from({ length: TRIES }, () => 1));
    },
  );
});
