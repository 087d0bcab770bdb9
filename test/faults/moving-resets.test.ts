/**
 * Resets, blocks and refunds of counters whose slot is migrating. Redis refuses a script the use of a key that the script has just removed
 * there: it takes the key for one that is on the other node.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisCluster, startCluster, until } from "../harness/redis-cluster.js";
import { leaderOf, moveSlot, slotOfUser, upTo } from "./cluster-steps.js";

const LIMIT = 5;
const forms = [
  { algorithm: "token-bucket" },
  { algorithm: "gcra" },
  { algorithm: "fixed-window" },
  { algorithm: "sliding-counter" },
  { algorithm: "rolling-window", storage: "sorted-set" },
  { algorithm: "rolling-window", storage: "packed" },
] as const;
const rules = forms.map(
  (form, i) =>
    ({
      id: `r${i}`,
      key: ["user"],
      match: { form: String(i) },
      limit: LIMIT,
      window: "1d",
      blockFor: "1h",
      onStoreFailure: "deny",
      ...form,
    }) as Rule,
);

describe.skipIf(whyMissing("redis"))("a slot that is migrating", () => {
  let cluster: RedisCluster;
  let limiter: Limiter;
  beforeAll(async () => {
    cluster = await startCluster();
    limiter = createLimiter({ store: redisStore(cluster.url, { deadlineMs: 60_000, rememberRefusals: false }), rules });
    await until("the store answers", () => limiter.ready());
  });
  afterAll(async () => {
    await limiter?.close();
    await cluster?.stop();
  });

  /** Does a step while the slot is migrating and all its keys are where they were, then lets them move. */
  async function whileMoving(user: string, step: () => Promise<void>): Promise<void> {
    const { leader } = await leaderOf(cluster, user);
    const to = cluster.leaders.find((one) => one !== leader)!;
    await moveSlot(cluster, { slot: slotOfUser(user), from: leader, to, between: upTo(1, step) });
  }

  test.each(forms.map((form, i) => [JSON.stringify(form), String(i)]))("%s: a counter is reset", async (_, form) => {
    const request = { user: `reset${form}`, form };
    // Past its limit, so that a rolling window has a debt, too.
    await limiter.charge(request, { cost: LIMIT + 3 });
    await whileMoving(request.user, () => limiter.reset(`r${form}`, request));
    expect(await limiter.peek(request)).toMatchObject({ allowed: true, remaining: LIMIT });
  });

  test("a key that is blocked already is blocked anew", async () => {
    const request = { user: "blocked", form: "0" };
    await limiter.block("r0", request, 600_000);
    await whileMoving(request.user, () => limiter.block("r0", request, 1_200_000));
    const { allowed, retryAfterMs } = await limiter.check(request);
    expect([allowed, Math.ceil(retryAfterMs! / 60_000)]).toEqual([false, 20]);
  });

  test("the last unit of a counter whose clock is ahead is given back", async () => {
    const request = { user: "ahead", form: "4" };
    const key = "sluice:1:{user=ahead}:r4:z";
    const decision = await limiter.check(request);
    // As the clock of a leader that was followed by a slower one leaves it.
    const { leader } = await leaderOf(cluster, request.user);
    await leader.cli(
      "ZADD",
      key,
      "XX",
      String(Date.now() + 600_000),
      (await leader.cli("ZRANGE", key, "0", "0")).trim(),
    );
    await whileMoving(request.user, async () => expect(await limiter.refund(decision)).toBe(true));
    expect(await limiter.peek(request)).toMatchObject({ allowed: true, remaining: LIMIT });
  });
});
