/**
 * The twins: random rules and schedules through the Lua scripts on a real Redis, then replayed through the models at the times
 * that the scripts report. Every verdict must be equal, number by number.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test as vitest } from "vitest";
import { chargedBy } from "../../packages/sluice/src/algorithms/charged.js";
import type { ConcurrencyPolicy, Policy } from "../../packages/sluice/src/algorithms/policy.js";
import type { Check } from "../../packages/sluice/src/check.js";
import { SluiceError } from "../../packages/sluice/src/errors.js";
import type { Rule } from "../../packages/sluice/src/index.js";
import { turnsKey } from "../../packages/sluice/src/keys.js";
import { asCharges } from "../../packages/sluice/src/limiter/charges.js";
import { compileRuleBook } from "../../packages/sluice/src/rules/rule-book.js";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { redisConnection } from "../../packages/sluice/src/store/redis/connection.js";
import { RedisStore } from "../../packages/sluice/src/store/redis/redis-store.js";
import type { LeaseRequest, StoreReply, StoreRequest } from "../../packages/sluice/src/store/store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { ruleSet, type Step, step } from "./arbitrary-rules.js";
import { inOrderOfDecision, isForDecide } from "./order-of-decision.js";
import { scriptTimeOf } from "./script-time.js";

const test = vitest.skipIf(whyMissing("redis"));

/** Schedules wait for Redis and for time to pass: two at a time, each through a store of its own. */
const LANES = 2;

interface Lane {
  readonly store: RedisStore;
  /** The time that the last refund, release or renewal used. */
  lastNowMs: number;
}

let redis: RedisServer;
let lanes: readonly Lane[] = [];

async function openLane(): Promise<Lane> {
  const connection = redisConnection(redis.url);
  const send = connection.send.bind(connection);
  const store = new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false });
  const lane: Lane = { store, lastNowMs: 0 };
  connection.send = async (command, args) => {
    const reply = await send(command, args);
    lane.lastNowMs = scriptTimeOf(args, reply) ?? lane.lastNowMs;
    return reply;
  };
  expect(await store.ready()).toBe(true);
  return lane;
}

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  lanes = await Promise.all(Array.from({ length: LANES }, openLane));
});

afterAll(async () => {
  for (const { store } of lanes) await store.close();
  await redis?.stop();
});

let decisions = 0;
let charges = 0;
let debts = 0;
let refunds = 0;
let resets = 0;
let blocked = 0;
let denied = 0;
let turns = 0;
let vacated = 0;
let conflicts = 0;
let runs = 0;
/** More than a sorted set keeps one by one. */
const FAR_COST = 20_000;

/** An id that was sent for another request; nothing else may fail. */
function mistake(error: unknown): string {
  if (error instanceof SluiceError && error.code === "invalid-request") return error.message;
  throw error;
}

/** Each run has counters of its own: the rules' ids are its own. */
function namesake(rules: readonly Rule[], run: number): Rule[] {
  return rules.map((rule) => ({ ...rule, id: `${rule.id}-${run}` }));
}

async function replay(lane: Lane, rules: readonly Rule[], steps: readonly Step[]): Promise<void> {
  const { store } = lane;
  const run = runs++;
  const book = compileRuleBook(namesake(rules, run), 1);
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  let admitted: { request: StoreRequest; reply: StoreReply }[] = [];
  let pending: { request: StoreRequest; reply: Promise<StoreReply | string> }[] = [];
  // The plain script leaves a ring in debt to another.
  const mayBeLeft = rules.length === 1 && rules[0]!.algorithm === "rolling-window" && rules[0]!.storage === "packed";

  const settle = async (): Promise<void> => {
    for (const { request, reply } of inOrderOfDecision(pending)) {
      const lua = await reply;
      if (typeof lua === "string") {
        expect(() => model.decide(request)).toThrow(lua);
        conflicts++;
        continue;
      }
      if (lua.repeated === undefined) nowMs = lua.nowMs;
      const ts = model.decide(request);
      decisions++;
      if (request.checks.some(({ charge }) => charge)) charges++;
      if (lua.verdicts.some(({ remaining }) => remaining < 0)) debts++;
      if (lua.verdicts.some(({ reason }) => reason === "blocked")) blocked++;
      if (request.checks.some(({ plan }) => plan.policy.limit === 0)) denied++;
      if (lua.verdicts.some(({ delayMs }) => delayMs > 0)) turns++;
      // Compared as text first: a deep comparison by the test runner for each of 200 000 decisions would take minutes.
      if (JSON.stringify(lua.verdicts) !== JSON.stringify(ts.verdicts)) {
        expect({ request, nowMs, verdicts: lua.verdicts }).toEqual({ request, nowMs, verdicts: ts.verdicts });
      }
      if ((lua.repeated === undefined) !== (ts.repeated === undefined)) expect(lua.repeated).toEqual(ts.repeated);
      // A charge behind turns is stamped as the last of them: only a sorted set's names find it again.
      const isLost = request.checks.some(({ plan, charge }) => charge === true && plan.maxWaitMs > 0);
      if (request.charge && lua.repeated === undefined && !isLost) admitted.push({ request, reply: lua });
    }
    pending = [];
  };

  for (const [i, { waitMs, attributes, cost, kind, far }] of steps.entries()) {
    if (waitMs > 0) {
      await settle();
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    if (kind === "check" || kind === "peek" || kind === "repeat" || kind === "charge" || kind === "mixed") {
      // Within a step's batch, order is kept; a repeat names the id of a request a few steps back, if that one had an id.
      const id = kind === "repeat" || i % 7 === 0 ? `${run}-${kind === "repeat" ? i - (i % 7) : i}` : undefined;
      const checks = checksOf(kind, book.checks(attributes, far && kind === "charge" ? FAR_COST : cost));
      const request = {
        checks,
        charge: kind !== "peek",
        entryId: `e${String(i).padStart(4, "0")}`,
        id,
        fingerprint: `${attributes.user}${attributes.path}${cost}`,
        rulesVersion: 1,
      };
      const mixes = mayBeLeft && pending.length > 0 && isForDecide(request) !== isForDecide(pending[0]!.request);
      if (mixes) await settle();
      const reply = Promise.resolve(store.decide(request)).catch(mistake);
      pending.push({ request, reply });
      if (pending.length >= 100) await settle();
      continue;
    }
    await settle();
    if (kind === "reset") {
      resets++;
      const keys = book
        .checks(attributes, 0)
        .flatMap(({ key, block }) => [key, turnsKey(key), ...(block === undefined ? [] : [block.key])]);
      await store.reset(keys);
      // To the millisecond: what is charged in the one of the reset is not told from what was charged before it.
      await new Promise((resolve) => setTimeout(resolve, 2));
      model.reset(keys);
      // Nothing tells a turn to come from one that was booked for the same instant after the reset, but for a sorted set's names.
      admitted = admitted.filter(({ reply }) => reply.verdicts.every(({ delayMs }) => delayMs === 0));
      continue;
    }
    if (kind === "give-back") {
      const checks = book.checks(attributes, cost).filter(({ plan }) => plan.maxWaitMs === 0);
      const lua = await store.giveBack(checks);
      if (checks.some((check) => check.cost > 0)) nowMs = lane.lastNowMs;
      expect(lua).toBe(model.giveBack(checks));
      // Whose entries were given back is known to sorted sets alone: a refund by name would then differ. Leases have their names everywhere,
      // buckets nowhere.
      admitted = admitted.filter(({ request }) =>
        request.checks.every((check) => isConcurrency(check) || isBucket(check)),
      );
      continue;
    }
    const chosen = (i * 7) % Math.max(1, admitted.length);
    const past = admitted[chosen];
    if (past === undefined) continue;
    // Once is the limiter's to see to; entries of one millisecond are alike, so a second refund would take another's.
    if (kind === "refund") {
      refunds++;
      admitted.splice(chosen, 1);
    }
    await undo(lane, kind, past, model, (atMs) => {
      nowMs = atMs;
    });
  }
  await settle();
}

function checksOf(kind: Step["kind"], checks: readonly Check[]): readonly Check[] {
  if (kind === "charge") return asCharges(checks);
  return kind === "mixed" ? checks.flatMap((check, i) => (i % 2 === 0 ? asCharges([check]) : [check])) : checks;
}

/** A refund, release or renewal of a past request, on both. */
async function undo(
  lane: Lane,
  kind: "refund" | "release" | "renew",
  { request, reply }: { request: StoreRequest; reply: StoreReply },
  model: MemoryStore,
  setNow: (atMs: number) => void,
): Promise<void> {
  const { store } = lane;
  const charges = request.checks.flatMap((check, i) =>
    reply.verdicts[i]!.charged ? [chargedBy(reply, i, check, request.entryId)] : [],
  );
  const held = charges.map(({ check }) => check).filter(isConcurrency);
  if (kind === "refund") {
    if (charges.length === 0) return;
    const refund = { charges, id: request.id };
    const lua = await store.refund(refund);
    setNow(lane.lastNowMs);
    if (charges.some(({ atMs }) => atMs > lane.lastNowMs)) vacated++;
    expect(lua).toBe(model.refund(refund));
    return;
  }
  if (held.length === 0) return;
  const { entryId } = request;
  const lease: LeaseRequest = {
    places: held.map(({ key, cost, plan }) => ({ key, entryId, places: cost, ttlMs: ttlOf(plan.policy) })),
  };
  const lua = kind === "release" ? await store.release(lease) : await store.renew(lease);
  setNow(lane.lastNowMs);
  expect(lua).toBe(kind === "release" ? model.release(lease) : model.renew(lease));
}

function ttlOf(policy: Policy): number {
  return (policy as ConcurrencyPolicy).ttlMs;
}

function isConcurrency({ plan }: Check): boolean {
  return plan.policy.stored === "concurrency";
}

function isBucket({ plan }: Check): boolean {
  return "amount" in plan.policy;
}

test("random rules and schedules get the same verdicts from the models and from Lua, over 200 000 decisions", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`model-and-lua: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 700, maxLength: 1200, size: "max" });
  const replays = fc.array(fc.tuple(ruleSet, schedule), { minLength: LANES, maxLength: LANES });
  const property = fc.asyncProperty(replays, async (each) => {
    await Promise.all(each.map(([rules, steps], i) => replay(lanes[i]!, rules, steps)));
  });
  await fc.assert(property, {
    seed,
    // Schedules of random length: 250 were now and then little more than 200 000 decisions.
    numRuns: 260 / LANES,
    // Schedules depend on real time: shrinking one would find others.
    endOnFailure: true,
  });
  console.log(
    `model-and-lua: ${decisions} decisions compared in ${runs} schedules; ${charges} with charges, ${debts} in debt; ` +
      `${refunds} refunds, ${resets} resets; ${blocked} of blocked keys, ${denied} under a limit of 0, ${turns} with a turn to come, ${vacated} of them given back`,
  );
  expect(decisions).toBeGreaterThanOrEqual(200_000);
  expect(Math.min(charges, debts, refunds, resets, conflicts, blocked, denied, turns, vacated * 10)).toBeGreaterThan(
    1_000,
  );
}, 1_200_000);
