/**
 * The twins of a region's pool: random asks, fills, requests and fetches of instances through the scripts on a real Redis, then
 * replayed through the model at the times that the scripts report. Every answer must be equal, number by number.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import type { PoolFill } from "../../packages/sluice/src/algorithms/pool.js";
import type { Check, CheckPlan } from "../../packages/sluice/src/check.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { Charged, Store, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const test = vitest.skipIf(whyMissing("redis"));

let redis: RedisServer;
let store: RedisStore;

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  store = new RedisStore(redisConnection(redis.url), { deadlineMs: 60_000, rememberRefusals: false });
  expect(await store.ready()).toBe(true);
});

afterAll(async () => {
  await store?.close();
  await redis?.stop();
});

const amount = fc.integer({ min: 0, max: 12 });
const step = fc.record({
  waitMs: fc.oneof(
    { weight: 10, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  kind: fc.constantFrom(
    "check",
    "check",
    "check",
    "charge",
    "peek",
    "fetch",
    "fetch",
    "ask",
    "fill",
    "refill",
    "refill",
    "refund",
  ),
  cost: fc.integer({ min: 0, max: 3 }),
  holder: fc.constantFrom("h1", "h2"),
  used: amount,
  held: amount,
  want: amount,
  givesBack: fc.constantFrom("no" as const, "no" as const, "if-idle" as const, "all" as const),
  /** Of an ask: any, the last one, one that is over, or none. */
  only: fc.constantFrom("any", "any", "any", "last", "other", "none"),
  isAnswered: fc.oneof({ weight: 6, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  // Long lives too: on a busy machine short ones would all have ended before the next step.
  lifeMs: fc.oneof(
    fc.integer({ min: -1, max: 8 }),
    fc.integer({ min: 20, max: 120 }),
    fc.integer({ min: 2_000, max: 9_000 }),
  ),
  isKept: fc.boolean(),
  lowPart: fc.constantFrom(-1, 0.5),
  refusedForMs: fc.constantFrom(0, 0, 4),
  isStale: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  hasTerm: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

let runs = 0;
let allowed = 0;
let granted = 0;
let counted = 0;
let overdrawn = 0;

function planOf(prefetchMs: number): CheckPlan {
  const policy = { stored: "pool", limit: 20, largestCost: 20 } as const;
  const common = { rule: "r", mode: "enforce", variant: undefined, keyEnd: "", onStoreFailure: "local" } as const;
  return { ...common, policy, prefetchMs, regionTermMs: 1_000, maxWaitMs: 0 };
}
const plans = { bare: planOf(0), held: planOf(5) };

async function replay(steps: readonly Step[]): Promise<void> {
  const key = `{run=${runs++}}:r:u`;
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  const seqs = new Map<string, number>();
  const charges: Charged[] = [];
  let seq = 0;
  let askedAtMs = 0;

  async function both<T extends { nowMs: number }>(call: (of: Store) => T | Promise<T>, given: unknown): Promise<T> {
    const lua = await call(store);
    nowMs = lua.nowMs;
    expect({ given, answer: await call(model) }).toEqual({ given, answer: lua });
    return lua;
  }

  for (const [i, one] of steps.entries()) {
    if (one.waitMs > 0) await new Promise((resolve) => setTimeout(resolve, one.waitMs));
    const { kind, cost, holder, used, held, want, givesBack, hasTerm } = one;
    if (kind === "ask" || kind === "refill") {
      const onlySeq = { any: 0, last: seq, other: 7, none: -1 }[one.only]!;
      const ask = { name: 1_000 + i, onlySeq, givesBack, leaseMs: 2 };
      const asked = await both((of) => of.askForPool(key, ask), ask);
      if (asked.isMine) ({ seq } = asked.numbers);
      if (asked.isMine) askedAtMs = asked.nowMs;
    }
    if (kind === "fill" || kind === "refill") {
      const { isAnswered, isKept, lifeMs, lowPart, refusedForMs } = one;
      const fill: PoolFill = {
        seq: one.isStale ? seq - 1 : seq,
        isAnswered,
        units: want,
        kept: isKept ? 1_000 : held,
        unitsEndMs: askedAtMs + lifeMs,
        lowPart,
        renewAtMs: askedAtMs + Math.floor(lifeMs / 2),
        refusedForMs,
        refusedCost: Math.max(1, cost),
        retryAfterMs: refusedForMs * 2,
        resetAfterMs: used,
        rate: used / 7,
        share: held / 13,
      };
      if ((await both((of) => of.fillPool(key, fill), fill)).isCounted) counted++;
    } else if (kind === "refund") {
      const charged = charges.pop();
      if (charged === undefined) continue;
      // The time of a refund is not told: an ask that changes nothing shows what it did.
      await store.refund({ charges: [charged], id: undefined });
      const look = { name: 0, onlySeq: -1, givesBack: "no", leaseMs: 0 } as const;
      const lua = await store.askForPool(key, look);
      nowMs = lua.nowMs;
      model.refund({ charges: [charged], id: undefined });
      const ts = model.askForPool(key, look);
      // When the refund was is not known: the units may have ended since.
      if (nowMs < lua.numbers.unitsEndMs) expect(ts).toEqual(lua);
      else return;
    } else if (kind !== "ask") {
      const plan = hasTerm || kind === "fetch" ? plans.held : plans.bare;
      // Charges are counted in full: more than the pool has.
      const check: Check =
        kind === "charge" ? { plan, key, cost: cost * 9, live: -1, charge: true } : { plan, key, cost, live: -1 };
      const last = seqs.get(holder) ?? 1;
      if (kind === "fetch") seqs.set(holder, last + 1);
      const fetch = { holder, seq: last + 1, used: (last + 1) * used, held, want, need: cost };
      const request: StoreRequest = {
        checks: [check],
        charge: kind !== "peek",
        entryId: `e${i}`,
        id: undefined,
        fingerprint: "",
        rulesVersion: 1,
        ...(kind === "fetch" && { fetches: [fetch] }),
      };
      const { verdicts, grants } = await both(async (of) => {
        const reply = await of.decide(request);
        return { nowMs: reply.nowMs, verdicts: reply.verdicts, grants: reply.grants };
      }, request);
      if (verdicts[0]!.charged) {
        allowed++;
        charges.push({ check, atMs: nowMs, entryId: `e${i}`, owed: 0 });
      }
      if (verdicts[0]!.remaining < 0) overdrawn++;
      if ((grants?.[0]?.units ?? 0) > 0) granted++;
    }
  }
}

test("random pools answer alike in the model and in Lua", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`pools: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 150, maxLength: 250, size: "max" });
  await fc.assert(fc.asyncProperty(schedule, replay), { seed, numRuns: 70, endOnFailure: true });
  console.log(
    `pools: ${runs} schedules; ${allowed} charges, ${granted} grants, ${counted} fills, ${overdrawn} overdrawn`,
  );
  expect(Math.min(allowed, counted, overdrawn, granted * 2)).toBeGreaterThan(100);
}, 120_000);
