/**
 * The twins at the bound of what a counter holds: random charges that saturate it, small ones beside them, refunds and time that
 * passes. Every verdict of Lua must be the model's, and no refund may lower a counter that is saturated.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import { MOST_UNITS, type Verdict } from "../../packages/sluice/src/algorithms/model.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { scriptTimeOf } from "./script-time.js";

const test = vitest.skipIf(whyMissing("redis"));
let redis: RedisServer;
let store: RedisStore;
let lastNowMs = 0;

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  const connection = redisConnection(redis.url);
  const send = connection.send.bind(connection);
  connection.send = async (command, args) => {
    const reply = await send(command, args);
    lastNowMs = scriptTimeOf(args, reply) ?? lastNowMs;
    return reply;
  };
  store = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
  expect(await store.ready()).toBe(true);
});

afterAll(async () => {
  await store?.close();
  await redis?.stop();
});

const counted = { id: "saturated", key: [], limit: 3 } as const;
const algorithms = (["20ms", "365d"] as const).flatMap((window): Rule[] => [
  { ...counted, algorithm: "token-bucket", window },
  { ...counted, algorithm: "gcra", window },
  { ...counted, algorithm: "fixed-window", window },
  { ...counted, algorithm: "sliding-counter", window },
  { ...counted, algorithm: "rolling-window", window, storage: "sorted-set" },
  { ...counted, algorithm: "rolling-window", window, storage: "packed" },
]);

const step = fc.record({
  waitMs: fc.constantFrom(0, 0, 0, 0, 1, 2, 11),
  kind: fc.constantFrom("charge", "charge", "check", "refund", "refund", "give-back"),
  cost: fc.constantFrom(1, 2, 2 ** 40, 2 ** 52, MOST_UNITS),
  chosen: fc.nat(),
});

/** ioredis reads integers beyond 2^52 with an error of one. */
function inSteps(verdicts: readonly Verdict[]): Verdict[] {
  return verdicts.map((found) =>
    found.remaining < -(2 ** 52) ? { ...found, remaining: Math.round(found.remaining / 64) } : found,
  );
}

let runs = 0;
let saturated = 0;
let refunds = 0;

async function replay(algorithm: Rule, steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]) {
  const [check] = compileRuleBook([{ ...algorithm, id: `saturated-${runs++}` }], 1).checks({}, 1);
  const isBucket = algorithm.algorithm === "token-bucket" || algorithm.algorithm === "gcra";
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  const charged: { request: StoreRequest; reply: StoreReply }[] = [];
  for (const [i, { waitMs, kind, cost, chosen }] of steps.entries()) {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (kind === "give-back") {
      // As Envoy's negative hits: of one unit, so that a saturated counter stays so.
      const given = [{ ...check!, cost: 1 }];
      const lua = await store.giveBack(given);
      nowMs = lastNowMs;
      expect(lua).toBe(model.giveBack(given));
      // Whose entries these were is known to sorted sets alone.
      charged.length = 0;
    } else if (kind === "refund") {
      if (charged.length === 0) continue;
      const [{ request, reply }] = charged.splice(chosen % charged.length, 1) as [(typeof charged)[number]];
      const refund = {
        charges: [chargedBy(reply, 0, request.checks[0]!, request.entryId)],
        id: undefined,
      };
      const lua = await store.refund(refund);
      nowMs = lastNowMs;
      expect(lua).toBe(model.refund(refund));
      refunds++;
    } else {
      const asked = {
        ...check!,
        cost: kind === "check" ? 1 : cost,
        ...(kind === "charge" && { charge: true as const }),
      };
      const request: StoreRequest = {
        checks: [asked],
        charge: true,
        entryId: `e${i}`,
        id: undefined,
        fingerprint: "",
        rulesVersion: 1,
      };
      const lua = await store.decide(request);
      nowMs = lua.nowMs;
      expect({ i, verdicts: inSteps(lua.verdicts) }).toEqual({ i, verdicts: inSteps(model.decide(request).verdicts) });
      if (lua.verdicts[0]!.charged) charged.push({ request, reply: lua });
      if (lua.verdicts[0]!.remaining <= 8 - (isBucket ? 2 ** 43 : MOST_UNITS)) saturated++;
    }
    const look: StoreRequest = {
      checks: [{ ...check!, cost: 0 }],
      charge: false,
      entryId: "",
      id: undefined,
      fingerprint: "",
      rulesVersion: 1,
    };
    const lua = await store.decide(look);
    nowMs = lua.nowMs;
    expect({ i, kind, verdicts: inSteps(lua.verdicts) }).toEqual({
      i,
      kind,
      verdicts: inSteps(model.decide(look).verdicts),
    });
  }
}

test("counters at their bound answer alike in the models and in Lua", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`saturation: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 60, maxLength: 90, size: "max" });
  await fc.assert(fc.asyncProperty(fc.constantFrom(...algorithms), schedule, replay), {
    seed,
    numRuns: 60,
    endOnFailure: true,
  });
  console.log(`saturation: ${runs} schedules, ${saturated} charges at the bound, ${refunds} refunds`);
  expect(Math.min(saturated, refunds)).toBeGreaterThan(300);
});
