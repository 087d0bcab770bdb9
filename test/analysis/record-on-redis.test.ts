/**
 * Recordings of instances that share a Redis: their decisions interleave there, and their answers arrive in another order. The replay has
 * Redis's own order, and no difference.
 */
import { type Decision, type Rule, ruleBook } from "sluice";
import { redisStore } from "sluice/redis";
import { describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { makeTempFolder } from "../harness/leash.js";
import { randomOf } from "../harness/random.js";
import { startRedis } from "../harness/redis-server.js";
import { clean, type Run, record, rulesOf, verify } from "./recorded-run.js";

const INSTANCES = 4;
const CLIENTS = 24;
const part = ruleBook([{ id: "envoy", key: ["limit"], algorithm: "fixed-window", limit: 20, window: "1s" }]);

/** Few keys, so that every one is fought over. */
const rules = (limit: number): Rule[] => [
  ...rulesOf(limit),
  {
    id: "set",
    match: { kind: "h" },
    key: ["user"],
    algorithm: "rolling-window",
    storage: "sorted-set",
    limit,
    window: "700ms",
    minInterval: "1ms",
  },
];

/** One client of an instance: it waits for each answer, as others do beside it. */
async function client({ limiter }: Run, { steps, seed }: { steps: number; seed: number }): Promise<void> {
  const random = randomOf(seed);
  const pick = (most: number): number => Math.floor(random() * most);
  const kept: Decision[] = [];
  for (let step = 0; step < steps; step++) {
    const attributes = {
      user: `u${pick(5)}`,
      kind: "abcdefgh"[pick(8)]!,
      path: random() < 0.2 ? `/v1/${pick(3)}` : "/other",
      tokens: 1 + pick(3),
    };
    const roll = random();
    if (roll < 0.84) {
      const decision = await limiter
        .check(attributes, {
          ...(random() < 0.1 && { cost: pick(4) }),
          ...(random() < 0.05 && { id: `id-${seed}-${step - pick(3)}` }),
        })
        .catch(() => undefined);
      if (decision !== undefined) kept.push(decision);
      if (kept.length > 20) kept.shift();
    } else if (roll < 0.86) await limiter.charge(attributes, { cost: pick(5) });
    else if (roll < 0.9) {
      await limiter.checkAll([
        { attributes },
        { attributes: { limit: `l${pick(5)}` }, book: part, charge: random() < 0.3 },
      ]);
    } else if (roll < 0.93) {
      const decision = kept[pick(kept.length)];
      if (decision !== undefined) await limiter.refund(decision);
    } else if (roll < 0.96) {
      const lease = kept[pick(kept.length)]?.lease;
      if (lease !== undefined) await (random() < 0.5 ? limiter.renew(lease.id) : limiter.release(lease.id));
    } else if (roll < 0.98) await limiter.giveBack(attributes, { cost: 1 + pick(2) });
    else if (roll < 0.99) await limiter.peek(attributes);
    else if (roll < 0.995) await limiter.reset(random() < 0.5 ? "rolling" : "fixed", attributes);
    else if (roll < 0.998) await limiter.block("fixed", attributes, 50);
    else limiter.setRules(rules(3 + pick(8)));
  }
}

interface Options {
  readonly steps: number;
  readonly rememberRefusals: boolean;
}

async function recordedOnRedis({ steps, rememberRefusals }: Options) {
  await using redis = await startRedis();
  const folder = makeTempFolder("record-on-redis");
  // A deadline that no load of the machine passes: a call without an answer may have counted.
  const store = () => redisStore(redis.url, { deadlineMs: 30_000, rememberRefusals });
  const runs = Array.from({ length: INSTANCES }, (_, i) =>
    record(rules(6), { folder, id: `instance-${i}`, store: store(), isShared: true }),
  );
  await Promise.all(
    runs.flatMap((run, i) => Array.from({ length: CLIENTS }, (_, c) => client(run, { steps, seed: 1_000 * i + c }))),
  );
  for (const run of runs) await run.end();
  return await verify(folder);
}

describe.skipIf(whyMissing("redis"))("on a real Redis", () => {
  test("four instances with 24 clients each, all algorithms: the replay of their recordings has no difference but for keys that end while a script starts", async () => {
    const found = await recordedOnRedis({ steps: 120, rememberRefusals: false });
    console.log(`${found.decisions} decisions made again, ${found.uncertain} of them uncertain`);
    // Redis 7.0 judges whether a key has ended by the time at which a script starts; the script reads the clock later. A key that ends in
    // between (a block with its level, a bucket under other numbers) still counts there: the verifier counts that as uncertain.
    expect(found).toEqual({ ...clean, decisions: found.decisions, uncertain: found.uncertain });
    expect(found.uncertain).toBeLessThan(found.decisions / 100);
    expect(found.decisions).toBeGreaterThan(0.8 * INSTANCES * CLIENTS * 120);
  });

  test("refusals that instances remember are refused by the replay too, but where another instance gave something back", async () => {
    const found = await recordedOnRedis({ steps: 60, rememberRefusals: true });
    expect(found).toMatchObject({ differences: 0, otherNumbers: 0, bad: 0, unreadable: [] });
    expect(found.uncertain).toBeLessThan(found.decisions / 10);
  });

  test("under prefetch every request is recorded, once: decided in process, by the store together with others, refused by a fetch", async () => {
    await using redis = await startRedis();
    const folder = makeTempFolder("record-prefetch");
    const hot: Rule = { id: "hot", key: [], algorithm: "rolling-window", limit: 400, window: "1h", prefetch: "5s" };
    const store = redisStore(redis.url, { deadlineMs: 30_000 });
    const run = record([hot], { folder, store, isShared: true });
    const guarantees = new Set<string>();
    let allowed = 0;
    for (let burst = 0; burst < 12; burst++) {
      for (const decision of await Promise.all(Array.from({ length: 50 }, () => run.limiter.check({})))) {
        guarantees.add(decision.guarantee);
        if (decision.allowed) allowed++;
      }
    }
    await run.end();
    expect([...guarantees].sort()).toEqual(["atomic", "prefetched"]);
    expect(allowed).toBe(400);
    expect((await verify(folder)).prefetched).toBe(600);
  });
});
