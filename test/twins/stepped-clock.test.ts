/**
 * The twins on a clock that steps: random rules and schedules through Lua on a Redis under libfaketime, whose clock goes ahead and
 * back by parts of a window and by hours, replayed through the models at the times that the scripts report. Charges pass the limits.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import type { Check } from "../../packages/sluice/src/check.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { inOrderOfDecision, isForDecide } from "./order-of-decision.js";
import { scriptTimeOf } from "./script-time.js";

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
const limit = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 200, max: 600 }));
const window = fc.integer({ min: 1_000, max: 100_000 }).map((ms) => `${ms}ms` as const);
const storage = fc.constantFrom("sorted-set" as const, "packed" as const);
const minInterval = fc.constantFrom("1ms" as const, "300ms" as const);
const numbers = fc.oneof(
  fc.record({ algorithm: fc.constant("token-bucket" as const), limit, window }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit, window, burst: fc.integer({ min: 1, max: 30 }) }),
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit, window }),
  fc.record({ algorithm: fc.constant("sliding-counter" as const), limit, window }),
  fc.record({ algorithm: fc.constant("rolling-window" as const), limit, window, storage }),
  fc.record({ algorithm: fc.constant("rolling-window" as const), limit, window, storage, minInterval }),
  fc.record({ algorithm: fc.constant("concurrency" as const), limit, ttl: window }),
);

const kind = fc.oneof(
  { weight: 20, arbitrary: fc.constant("requests" as const) },
  { weight: 4, arbitrary: fc.constantFrom("forward" as const, "back" as const) },
  { weight: 2, arbitrary: fc.constantFrom("refund" as const, "give-back" as const, "reset" as const) },
);
/** How far a clock steps, in windows: within one, near one, hours. */
const leap = fc.oneof(
  fc.integer({ min: 1, max: 999 }).map((n) => n / 1_000),
  fc.constantFrom(0.999, 1, 1.001, 2, 2.5),
  fc.integer({ min: 3, max: 4_000 }),
);
const request = fc.record({
  kind: fc.constantFrom("check" as const, "check" as const, "charge" as const, "peek" as const),
  cost: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 9 }), fc.constantFrom(150, 20_000)),
});
const step = fc.record({ kind, leap, requests: fc.array(request, { minLength: 1, maxLength: 60 }) });
type Numbers = typeof numbers extends fc.Arbitrary<infer N> ? N : never;
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

describe.skipIf(whyMissing("redis", "faketime"))("the twins, on a clock that steps", () => {
  let redis: RedisServer;
  let store: RedisStore;
  /** The time that the last script used. */
  let lastNowMs = 0;
  let aheadMs = 0;
  let runs = 0;
  const seen = { decisions: 0, charges: 0, debts: 0, refunds: 0, resets: 0, backs: 0, farBacks: 0 };

  beforeAll(async () => {
    redis = await startRedis({ faketime: true });
    const connection = redisConnection(redis.url);
    const send = connection.send.bind(connection);
    connection.send = async (command, args) => {
      const reply = await send(command, args);
      lastNowMs = scriptTimeOf(args, reply) ?? lastNowMs;
      return reply;
    };
    store = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
  });
  afterAll(async () => {
    await store?.close();
    await redis?.stop();
  });

  const leapBy = (ms: number): void => {
    aheadMs += ms;
    redis.stepClock!(aheadMs / 1_000);
  };

  async function replay(chosen: Numbers, steps: readonly Step[]): Promise<void> {
    const id = `stepped-${runs++}`;
    const book = compileRuleBook([{ id, key: [], ...chosen } as Rule], 1);
    const windowMs = Number.parseInt("ttl" in chosen ? chosen.ttl : chosen.window, 10);
    const isNamed = "storage" in chosen && chosen.storage === "sorted-set";
    let nowMs = 0;
    let entries = 0;
    let wentBack = false;
    const model = new MemoryStore({ clock: { now: () => nowMs } });
    let admitted: { request: StoreRequest; reply: StoreReply }[] = [];

    const decide = async (asked: readonly { kind: "check" | "charge" | "peek"; cost: number }[]): Promise<void> => {
      const requests = asked.map(({ kind, cost }): StoreRequest => {
        const checks = book.checks({}, cost);
        const entryId = `e${String(entries++).padStart(6, "0")}`;
        const charged = kind === "charge" ? asCharges(checks) : checks;
        return { checks: charged, charge: kind !== "peek", entryId, id: undefined, fingerprint: "", rulesVersion: 1 };
      });
      for (const part of [requests.filter(isForDecide), requests.filter((request) => !isForDecide(request))]) {
        await compare(part);
      }
    };

    const compare = async (requests: readonly StoreRequest[]): Promise<void> => {
      const pending = requests.map((request) => ({ request, reply: Promise.resolve(store.decide(request)) }));
      for (const { request, reply } of inOrderOfDecision(pending)) {
        const lua = await reply;
        nowMs = lua.nowMs;
        const ts = model.decide(request);
        seen.decisions++;
        if (request.checks[0]!.charge) seen.charges++;
        if (lua.verdicts[0]!.remaining < 0) seen.debts++;
        if (JSON.stringify(lua.verdicts) !== JSON.stringify(ts.verdicts)) {
          const told = { chosen, nowMs, cost: request.checks[0]!.cost, charge: request.checks[0]!.charge };
          expect({ ...told, verdicts: lua.verdicts }).toEqual({ ...told, verdicts: ts.verdicts });
        }
        if (lua.verdicts[0]!.charged) admitted.push({ request, reply: lua });
      }
    };

    for (const { kind, leap, requests } of steps) {
      if (kind === "requests") {
        await decide(requests.filter(({ kind, cost }) => kind === "charge" || cost <= 5_000));
      } else if (kind === "forward") {
        leapBy(Math.ceil(leap * windowMs));
      } else if (kind === "back") {
        // A key that ended before the clock stepped back is gone in one store, and perhaps not yet in the other.
        await decide([{ kind: "ttl" in chosen ? "check" : "charge", cost: 1 }]);
        leapBy(-Math.ceil(leap * windowMs));
        wentBack = true;
        seen.backs++;
        if (leap > 2) seen.farBacks++;
      } else if (kind === "refund") {
        const past = admitted.splice(Math.floor(admitted.length * 0.9), 1)[0];
        // Entries with names are found even if the clock went back meanwhile; those without, by their time, are not.
        if (past === undefined || (isNamed && wentBack)) continue;
        seen.refunds++;
        const { checks, entryId } = past.request;
        const charges = checks.map((check, i) => chargedBy(past.reply, i, check, entryId));
        const refund = { charges, id: undefined };
        await store.refund(refund);
        nowMs = lastNowMs;
        model.refund(refund);
        await decide([{ kind: "peek", cost: 1 }]);
      } else if (kind === "give-back") {
        const checks = book.checks({}, requests[0]!.cost);
        const lua = await store.giveBack(checks);
        if (requests[0]!.cost > 0) nowMs = lastNowMs;
        expect(lua).toBe(model.giveBack(checks));
        admitted = [];
      } else {
        seen.resets++;
        // So that the model knows the time at which it forgets.
        await decide([{ kind: "peek", cost: 1 }]);
        const keys = book.checks({}, 0).map(({ key }: Check) => key);
        await store.reset(keys);
        model.reset(keys);
        leapBy(5);
      }
    }
  }

  test("clocks that go ahead and back lead the models and Lua to the same verdicts", async () => {
    console.log(`stepped-clock: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
    const schedule = fc.array(step, { minLength: 40, maxLength: 80, size: "max" });
    await fc.assert(fc.asyncProperty(numbers, schedule, replay), {
      seed,
      numRuns: 60,
      // The clock goes on by itself too: shrinking a schedule would find others.
      endOnFailure: true,
    });
    console.log(`stepped-clock: ${JSON.stringify(seen)} in ${runs} schedules`);
    expect(Math.min(seen.charges, seen.debts)).toBeGreaterThan(1_000);
    expect(Math.min(seen.refunds, seen.resets, seen.farBacks)).toBeGreaterThan(10);
  }, 600_000);
});
