/** A counter that is reset: what was charged before is gone, and no refund of it touches what came after. */
import { createLimiter, type Decision, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Decision as MadeDecision } from "../../packages/sluice/src/limiter/decision.js";
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

/** Turns of the event loop: what one turn asks for is sent in one batch. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

function atMsOf(decision: Decision): number {
  return MadeDecision.originOf(decision as MadeDecision).nowMs;
}

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

  test.each(rules)(
    "$id: a refund of a charge before it gives back nothing that another caller charged in its millisecond",
    async ({ id }) => {
      const cost = 2;
      const left: number[] = [];
      // Until so many had all three steps in one millisecond of Redis.
      for (let i = 0; left.length < 5; i++) {
        expect(i).toBeLessThan(20_000);
        const request = { only: id, user: `other-${i}` };
        const [before, , after] = await Promise.all([
          limiter.check(request, { cost }),
          turns(1).then(() => limiter.reset(id, request)),
          // Behind the reset on the same connection: it does not wait for its end.
          turns(2).then(() => limiter.check(request, { cost })),
        ]);
        if (!after.allowed || atMsOf(before) !== atMsOf(after)) continue;
        await limiter.refund(before);
        left.push((await limiter.peek(request, { cost: 0 })).remaining!);
      }
      expect(left).toEqual(left.map(() => 1));
    },
  );

  test.each(rules)(
    "$id: nor where the counter was charged and given back whole in between, still in that millisecond",
    async ({ id }) => {
      const cost = 2;
      const left: number[] = [];
      for (let i = 0; left.length < 5; i++) {
        expect(i).toBeLessThan(20_000);
        const request = { only: id, user: `between-${i}` };
        const [before, , , isGiven, after] = await Promise.all([
          limiter.check(request, { cost }),
          turns(1).then(() => limiter.reset(id, request)),
          turns(2).then(() => limiter.check(request, { cost })),
          turns(3).then(() => limiter.giveBack(request, { cost })),
          turns(4).then(() => limiter.check(request, { cost })),
        ]);
        if (!isGiven || !after.allowed || atMsOf(before) !== atMsOf(after)) continue;
        await limiter.refund(before);
        left.push((await limiter.peek(request, { cost: 0 })).remaining!);
      }
      expect(left).toEqual(left.map(() => 1));
    },
  );

  test.each([false, true])(
    "sorted-set: nor from the debt of the other's charge; given back in between: %s",
    async (isGivenBack) => {
      const left: number[] = [];
      for (let i = 0; left.length < 5; i++) {
        expect(i).toBeLessThan(20_000);
        const request = { only: "sorted-set", user: `debtor-${isGivenBack}-${i}` };
        const [before, , , , after] = await Promise.all([
          limiter.charge(request, { cost: 9 }),
          turns(1).then(() => limiter.reset("sorted-set", request)),
          turns(2).then(async () => isGivenBack && limiter.check(request, { cost: 2 })),
          turns(3).then(async () => isGivenBack && limiter.giveBack(request, { cost: 2 })),
          turns(4).then(() => limiter.charge(request, { cost: 9 })),
        ]);
        if (atMsOf(before) !== atMsOf(after) || after.debt !== 6) continue;
        await limiter.refund(before);
        left.push((await limiter.peek(request, { cost: 0 })).debt!);
      }
      expect(left).toEqual(left.map(() => 6));
    },
  );
});
