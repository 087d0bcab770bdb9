/**
 * The twins of held units: random rules with prefetch, and several holders that fetch, settle, repeat and come late, through fetch.lua on
 * a real Redis, then replayed through the model at the times that the script reports. Verdicts and grants must be equal, number by number.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import type { Fetch } from "../../packages/sluice/src/algorithms/grants.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
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

/** Mostly small, at times far beyond what any counter holds. */
const amount = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(1_000, 2 ** 40, Number.MAX_SAFE_INTEGER) },
);
const window = fc.integer({ min: 5, max: 60 }).map((ms) => `${ms}ms`);
const limit = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 9, max: 400 }));
const numbers = fc.oneof(
  fc.record({ algorithm: fc.constant("token-bucket" as const), limit, window }),
  fc.record({ algorithm: fc.constant("gcra" as const), limit, window }),
  fc.record({ algorithm: fc.constant("fixed-window" as const), limit, window }),
  fc.record({
    algorithm: fc.constant("rolling-window" as const),
    limit,
    window,
    storage: fc.constantFrom("packed" as const, "sorted-set" as const),
  }),
);
const mode = fc.constantFrom("enforce" as const, "enforce" as const, "shadow" as const);
const ruleSet = fc
  .array(fc.record({ numbers, mode, isPlain: fc.boolean() }), { minLength: 1, maxLength: 3 })
  .map((all) =>
    all.map(
      ({ numbers: own, mode: inMode, isPlain }, i): Rule => ({
        id: `r${i}`,
        key: ["user"],
        mode: inMode,
        ...own,
        // A fill time is shorter than a window where it is not the whole one: 5 ms is the least that a rule may say.
        ...(isPlain && i > 0 ? {} : { prefetch: "5ms" }),
      }),
    ),
  );

const step = fc.record({
  waitMs: fc.oneof(
    { weight: 12, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 12 }) },
  ),
  user: fc.constantFrom("a", "b"),
  holder: fc.constantFrom("h1", "h2", "h3"),
  /** Relative to the holder's last: 0 repeats it, below 0 comes late. */
  seqStep: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constantFrom(0, -1, 3) }),
  cost: fc.integer({ min: 0, max: 3 }),
  used: amount,
  held: amount,
  want: amount,
  kind: fc.constantFrom(
    "fetch" as const,
    "fetch" as const,
    "fetch" as const,
    "check" as const,
    "charge" as const,
    "peek" as const,
  ),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

let runs = 0;
let compared = 0;
let granted = 0;
let repeats = 0;

async function replay(rules: readonly Rule[], steps: readonly Step[]): Promise<void> {
  const run = runs++;
  const book = compileRuleBook(
    rules.map((rule) => ({ ...rule, id: `${rule.id}-${run}` })),
    1,
  );
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  const seqs = new Map<string, { seq: number; used: number }>();
  let pending: { request: StoreRequest; reply: Promise<StoreReply> }[] = [];

  const settle = async (): Promise<void> => {
    for (const { request, reply } of pending) {
      const lua = await reply;
      nowMs = lua.nowMs;
      const ts = model.decide(request);
      compared++;
      for (const grant of lua.grants ?? []) if (grant !== undefined && grant.units > 0) granted++;
      const both = [lua, ts].map(({ verdicts, grants }) => JSON.stringify([verdicts, grants]));
      if (both[0] !== both[1]) {
        expect({ run, request, nowMs, verdicts: lua.verdicts, grants: lua.grants }).toEqual({
          run,
          request,
          nowMs,
          verdicts: ts.verdicts,
          grants: ts.grants,
        });
      }
    }
    pending = [];
  };

  for (const [i, { waitMs, user, holder, seqStep, cost, used, held, want, kind }] of steps.entries()) {
    if (waitMs > 0) {
      await settle();
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    const checks = book.checks({ user }, cost);
    const last = seqs.get(holder + user) ?? { seq: 1, used: 0 };
    const seq = Math.max(0, last.seq + seqStep);
    if (seqStep === 0 && kind === "fetch") repeats++;
    const total = Math.min(Number.MAX_SAFE_INTEGER, last.used + used);
    if (kind === "fetch") seqs.set(holder + user, { seq: Math.max(seq, last.seq), used: total });
    const fetch: Fetch = { holder, seq, used: total, held, want };
    const request: StoreRequest = {
      checks: kind === "charge" ? asCharges(checks) : checks,
      charge: kind !== "peek",
      entryId: `e${i}`,
      id: undefined,
      fingerprint: "",
      rulesVersion: 1,
      ...(kind === "fetch" && {
        fetches: checks.map(({ plan }, n) => (plan.prefetchMs > 0 && (i + n) % 4 > 0 ? fetch : undefined)),
      }),
    };
    pending.push({ request, reply: Promise.resolve(store.decide(request)) });
    if (pending.length >= 20) await settle();
  }
  await settle();
}

test("random holders get the same verdicts and grants from the model and from Lua", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`grants: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 150, maxLength: 250, size: "max" });
  await fc.assert(fc.asyncProperty(ruleSet, schedule, replay), { seed, numRuns: 20, endOnFailure: true });
  console.log(`grants: ${compared} decisions compared in ${runs} schedules; ${granted} grants, ${repeats} repeats`);
  expect(compared).toBeGreaterThan(3_000);
  // Over 20 seeds 700 to 1100 grants and 60 to 90 repeats were seen.
  expect(granted).toBeGreaterThan(100);
  expect(repeats).toBeGreaterThan(20);
}, 120_000);
