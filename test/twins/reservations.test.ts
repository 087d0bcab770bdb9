/**
 * The twins of holds: random rules with estimates, whose requests are reserved, extended, settled, cancelled and forgotten, through
 * decide.lua and settle.lua on a real Redis, then replayed through the model at the times that the scripts report. Verdicts, what is
 * held and what is charged must be equal, number by number; and so must the counters be afterwards.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import type { Check } from "../../packages/sluice/src/check.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import { type Amounts, heldCounters, type Reserved } from "../../packages/sluice/src/store/reserved.js";
import type { Store, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { scriptTimeOf } from "./script-time.js";

const test = vitest.skipIf(whyMissing("redis"));
/** About 3 000 calls. `SLUICE_TEST_RUNS=1700` compares 200 000, which takes minutes. */
const RUNS = Number(process.env.SLUICE_TEST_RUNS ?? 25);

let redis: RedisServer;
let store: RedisStore;
/** The time that the last script used. */
let scriptNowMs = 0;

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  const connection = redisConnection(redis.url, { heartbeatMs: 60_000 });
  const send = connection.send.bind(connection);
  connection.send = async (command, args) => {
    const reply = await send(command, args);
    scriptNowMs = scriptTimeOf(args, reply) ?? scriptNowMs;
    return reply;
  };
  store = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
  expect(await store.ready()).toBe(true);
});

afterAll(async () => {
  await store?.close();
  await redis?.stop();
});

const window = fc.oneof(
  fc.integer({ min: 5, max: 60 }).map((ms) => `${ms}ms`),
  fc.constant("1h"),
);
const limit = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 13, max: 600 }));
const numbers = fc.oneof(
  fc.record({ algorithm: fc.constant("token-bucket" as const), limit, window }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit, window }),
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit, window }),
  fc.record({ algorithm: fc.constant("sliding-counter" as const), limit, window }),
  fc.record({
    algorithm: fc.constant("rolling-window" as const),
    limit,
    window,
    storage: fc.constantFrom("packed" as const, "sorted-set" as const),
  }),
);
const ruleSet = fc
  .array(
    fc.record({
      numbers,
      mode: fc.constantFrom("enforce" as const, "enforce" as const, "shadow" as const),
      overrun: fc.constantFrom("finish" as const, "stop" as const),
      kind: fc.constantFrom("estimate" as const, "estimate" as const, "plain" as const, "candidate" as const),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((all) =>
    all.map(({ numbers: own, mode, overrun, kind }, i): Rule => {
      const rule: Rule = { id: `r${i}`, key: ["user"], mode, ...own };
      if (kind === "plain" && i > 0) return rule;
      const estimated: Rule = { ...rule, cost: { attribute: `c${i % 2}` }, estimate: { default: 1, overrun } };
      return kind === "candidate" ? { ...estimated, candidate: { limit: 7 } } : estimated;
    }),
  );

/** Mostly small, at times far beyond what any counter holds. */
const amount = fc.oneof(
  { weight: 10, arbitrary: fc.integer({ min: 0, max: 20 }) },
  { weight: 2, arbitrary: fc.integer({ min: 21, max: 700 }) },
  { weight: 1, arbitrary: fc.constantFrom(6_000, 2 ** 40, 2 ** 48) },
);
const step = fc.record({
  waitMs: fc.oneof(
    { weight: 30, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  user: fc.constantFrom("a", "b"),
  kind: fc.constantFrom(
    "hold",
    "hold",
    "hold",
    "settle",
    "settle",
    "extend",
    "extend",
    "cancel",
    "charge",
    "peek",
    "reset",
    "forge",
  ),
  /** Which of the reservations so far. */
  which: fc.nat({ max: 6 }),
  holdMs: fc.constantFrom(8, 60, 60_000),
  said: fc.integer({ min: 1, max: 30 }),
  first: fc.option(amount, { nil: undefined }),
  second: fc.option(amount, { nil: undefined }),
  /** What an extension asks for in all, instead: mostly more than a limit has left. */
  more: fc.option(fc.integer({ min: 1, max: 900 }), { nil: undefined }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Whatever the seed: an extension that the limit has no room for, under `stop`. */
const quiet: Step = {
  waitMs: 0,
  user: "a",
  kind: "hold",
  which: 0,
  holdMs: 60_000,
  said: 3,
  first: 1,
  second: 1,
  more: 9,
};
const refusedExtension: [Rule[], Step[]] = [
  [
    {
      id: "r0",
      key: ["user"],
      algorithm: "fixed-window",
      limit: 5,
      window: "1h",
      cost: { attribute: "c0" },
      estimate: { default: 1, overrun: "stop" },
    },
  ],
  [quiet, { ...quiet, kind: "extend" }, { ...quiet, kind: "settle" }],
];

let runs = 0;
let decisions = 0;
const seen = { held: 0, settled: 0, again: 0, expired: 0, overrun: 0, extended: 0, refused: 0, unknown: 0 };

async function replay(rules: readonly Rule[], steps: readonly Step[]): Promise<void> {
  const run = runs++;
  const named = rules.map((rule) => ({ ...rule, id: `${rule.id}-${run}` }));
  const book = compileRuleBook(named, 1);
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  const reservations: Reserved[] = [];

  /** One call on both, the model at the script's time. */
  const both = async <T>(what: string, call: (on: Store) => T | Promise<T>): Promise<T> => {
    const lua = await call(store);
    nowMs = scriptNowMs;
    const ts = await call(model);
    decisions++;
    if (JSON.stringify(lua) !== JSON.stringify(ts))
      expect({ run, what, nowMs, reply: lua }).toEqual({ run, what, nowMs, reply: ts });
    return lua;
  };
  const decide = (checks: readonly Check[], charge: boolean, entryId: string, holdMs?: number) => {
    const request: StoreRequest = { checks, charge, entryId, id: undefined, fingerprint: "", rulesVersion: 1, holdMs };
    return both(`decide ${entryId}`, async (on) => {
      const { verdicts } = await on.decide(request);
      return verdicts;
    });
  };

  for (const [i, { waitMs, user, kind, which, holdMs, said, first, second, more }] of steps.entries()) {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const told = kind === "extend" && more !== undefined ? [more, more] : [first, second];
    const amounts: Amounts = new Map(
      told.flatMap((units, n) => (units === undefined ? [] : [[`c${n}`, units] as const])),
    );
    // The last ones are open most often, which an extension needs.
    const reserved = reservations.at(-1 - (kind === "extend" ? which % 3 : which));
    if (kind === "hold") {
      const checks = book.checks({ user }, undefined).map((check) => (check.held ? { ...check, cost: said } : check));
      const entryId = `e${run}-${i}`;
      const counters = heldCounters(checks, () => entryId);
      const verdicts = await decide(checks, true, entryId, holdMs);
      const isRefused = checks.some(({ plan }, n) => plan.mode === "enforce" && !verdicts[n]!.allowed);
      reservations.push({ ttlMs: holdMs, counters });
      if (!isRefused) seen.held++;
    } else if (kind === "charge") await decide(asCharges(book.checks({ user }, undefined)), true, `e${run}-${i}`);
    else if (kind === "peek") await decide(book.checks({ user }, said), false, "");
    else if (kind === "reset" && which === 0) {
      const keys = book.keysOf(named[0]!.id, { user });
      await store.reset(keys);
      // A script tells the time; charges of its millisecond, before and after, are told apart only by the model.
      await new Promise((resolve) => setTimeout(resolve, 2));
      model.reset(keys);
    } else if (reserved !== undefined && kind !== "reset") await useReservation(kind, reserved, amounts);
  }

  async function useReservation(kind: Step["kind"], reserved: Reserved, amounts: Amounts): Promise<void> {
    if (kind === "extend") {
      const { state, verdicts } = await both("extend", async (on) => {
        const { nowMs: _, ...reply } = await on.extend(reserved, amounts);
        return reply;
      });
      if (state !== "open") return;
      const isRefused = reserved.counters.some(({ mode }, n) => mode === "enforce" && !verdicts[n]!.allowed);
      seen[isRefused ? "refused" : "extended"]++;
      return;
    }
    const told = kind === "cancel" ? new Map(["c0", "c1"].map((name) => [name, 0])) : amounts;
    const [counter, ...others] = reserved.counters;
    // Another counter's key in place of the own, or another limit: the hold vouches for neither.
    const forged: Reserved = { ...reserved, counters: [{ ...counter!, rule: "another" }, ...others] };
    const reply = await both(kind, async (on) => await on.settle(kind === "forge" ? forged : reserved, told));
    const { state } = reply.counters[0]!;
    if (state === "settled") seen[reply.isNew ? "settled" : "again"]++;
    else if (state === "expired" || state === "unknown") seen[state]++;
    if (reply.counters.some(({ held, charged }) => charged > held)) seen.overrun++;
    if (kind === "forge") expect(state).toBe("unknown");
  }
}

test("reservations are decided, extended and settled alike by the scripts and by the models", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`reservations: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 100, maxLength: 200, size: "max" });
  const examples = [refusedExtension];
  await fc.assert(fc.asyncProperty(ruleSet, schedule, replay), { seed, numRuns: RUNS, endOnFailure: true, examples });
  console.log(`reservations: ${decisions} calls compared in ${runs} schedules; ${JSON.stringify(seen)}`);
  for (const [what, count] of Object.entries(seen)) expect([what, count > 0]).toEqual([what, true]);
}, 600_000);
