/**
 * The records of request ids, as the scripts write them and TypeScript reads them: random verdicts, of requests that are allowed, refused,
 * blocked, in debt, with a turn ahead of now, beside units that holders fetched, or charged to a bucket that was given back to. What is read
 * from a record is what its request was answered; and what TypeScript would write of that answer (for slots on the move) is what the script
 * wrote.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import type { Check } from "../../packages/sluice/src/check.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import { decodeRecord, spellVerdicts } from "../../packages/sluice/src/store/redis/wire.js";
import type { StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { ruleSet } from "./arbitrary-rules.js";

const test = vitest.skipIf(whyMissing("redis"));
const RUNS = 120;
const PREFETCH_MS = 50;

let redis: RedisServer;
let client: Redis;
let store: RedisStore;

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  client = new Redis(redis.url);
  store = new RedisStore(redisConnection(redis.url), { deadlineMs: 60_000, rememberRefusals: false });
  expect(await store.ready()).toBe(true);
});
afterAll(async () => {
  await store?.close();
  client?.disconnect();
  await redis?.stop();
});

const step = fc.record({
  waitMs: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 8 }) }),
  user: fc.constantFrom("a", "b"),
  kind: fc.constantFrom("check", "check", "check", "check", "charge", "give-back", "fetch"),
  cost: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.integer({ min: 0, max: 9 }) }),
  far: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  want: fc.integer({ min: 1, max: 4 }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const seen = { records: 0, refused: 0, blocked: 0, inDebt: 0, turns: 0, besideHeld: 0, given: 0 };
let runs = 0;

/** Where a rule could fetch units ahead, it does. */
function withPrefetch(check: Check): Check {
  const { stored } = check.plan.policy;
  const mayFetch =
    check.plan.maxWaitMs === 0 && check.live < 0 && stored !== "concurrency" && stored !== "sliding-counter";
  return mayFetch && check.block === undefined ? { ...check, plan: { ...check.plan, prefetchMs: PREFETCH_MS } } : check;
}

async function replay(
  rules: Parameters<typeof compileRuleBook>[0],
  prefetches: boolean,
  steps: readonly Step[],
): Promise<void> {
  const run = runs++;
  const named = rules.map((rule) => ({ ...rule, id: `${rule.id}-${run}` }));
  const book = compileRuleBook(named, 1);
  for (const [i, { waitMs, user, kind, cost, far, want }] of steps.entries()) {
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    const found = book.checks({ user, path: "/x" }, kind === "charge" && far ? 20_000 : cost);
    const checks = prefetches ? found.map(withPrefetch) : found;
    const request: StoreRequest = {
      checks: kind === "charge" ? asCharges(checks) : checks,
      charge: true,
      entryId: `e${run}-${i}`,
      id: `${run}-${i}`,
      fingerprint: "print",
      rulesVersion: 1,
    };
    if (kind === "give-back") await store.giveBack(checks);
    else if (kind === "fetch") {
      const fetch = { holder: `h${user}`, seq: i + 1, used: 0, held: 0, want };
      const fetches = checks.map(({ plan }) => (plan.prefetchMs > 0 ? fetch : undefined));
      await store.decide({ ...request, id: undefined, fetches });
    } else await recorded(request);
  }
}

async function recorded(request: StoreRequest): Promise<void> {
  const { id, checks, entryId, rulesVersion } = request;
  const first = await store.decide(request);
  const text = (await client.get(`sluice:1:{*}!3=${id}`))!;
  const numbers = text.split("\n")[1]!;
  assert.equal(numbers, spellVerdicts(first, checks));
  const read = decodeRecord(text, 7) as StoreReply;
  const { nowMs, verdicts } = first;
  const told = JSON.parse(JSON.stringify(checks)) as readonly Check[];
  assert.deepEqual(read, {
    nowMs,
    verdicts,
    guarantee: "atomic",
    repeated: { entryId, rulesVersion, checks: told, atMs: 7 },
  });
  const again = await store.decide(request);
  assert.deepEqual([again.verdicts, again.nowMs, again.repeated?.entryId], [verdicts, nowMs, entryId]);
  seen.records++;
  if (verdicts.some(({ allowed }) => !allowed)) seen.refused++;
  if (verdicts.some(({ reason }) => reason === "blocked")) seen.blocked++;
  if (verdicts.some(({ remaining }) => remaining < 0)) seen.inDebt++;
  if (verdicts.some(({ delayMs }) => delayMs > 0)) seen.turns++;
  if (verdicts.some(({ given = 0 }) => given > 0)) seen.given++;
  if (checks.some(({ plan }) => plan.prefetchMs > 0)) seen.besideHeld++;
}

test("a record that a script wrote is read as its request was answered, and is what TypeScript would have written", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`records: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 20, maxLength: 60, size: "max" });
  await fc.assert(fc.asyncProperty(ruleSet, fc.boolean(), schedule, replay), { seed, numRuns: RUNS });
  console.log(`records: ${JSON.stringify(seen)}`);
  for (const [what, count] of Object.entries(seen)) expect([what, count > 20]).toEqual([what, true]);
}, 120_000);
