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
import { refusedExtension, ruleSet, type Step, step } from "./reservation-schedules.js";
import { scriptTimeOf } from "./script-time.js";

const test = vitest.skipIf(whyMissing("redis"));
/** Of about 117 calls each: 206 000 in all, give or take 1500. `SLUICE_TEST_RUNS` sets another number of schedules. */
const RUNS = Number(process.env.SLUICE_TEST_RUNS ?? 1_760);
const FEWEST_CALLS = process.env.SLUICE_TEST_RUNS === undefined ? 200_000 : 0;
/** Schedules at once, each with counters and a connection of its own: while one waits for its windows to end, others go on. */
const LANES = 16;

interface Lane {
  readonly store: RedisStore;
  /** The time that the last script used. */
  scriptNowMs: number;
}

let redis: RedisServer;
let lanes: Lane[] = [];

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  lanes = await Promise.all(Array.from({ length: LANES }, openLane));
});

afterAll(async () => {
  await Promise.all(lanes.map(({ store }) => store.close()));
  await redis?.stop();
});

async function openLane(): Promise<Lane> {
  const connection = redisConnection(redis.url, { heartbeatMs: 60_000 });
  const send = connection.send.bind(connection);
  const lane: Lane = {
    store: new RedisStore(connection, { deadlineMs: 60_000, rememberRefusals: false }),
    scriptNowMs: 0,
  };
  connection.send = async (command, args) => {
    const reply = await send(command, args);
    lane.scriptNowMs = scriptTimeOf(args, reply) ?? lane.scriptNowMs;
    return reply;
  };
  expect(await lane.store.ready()).toBe(true);
  return lane;
}

let runs = 0;
let decisions = 0;
const seen = { held: 0, settled: 0, again: 0, own: 0, expired: 0, overrun: 0, extended: 0, refused: 0, unknown: 0 };

async function replay(lane: Lane, rules: readonly Rule[], steps: readonly Step[]): Promise<void> {
  const { store } = lane;
  const run = runs++;
  const named = rules.map((rule) => ({ ...rule, id: `${rule.id}-${run}` }) as Rule);
  const book = compileRuleBook(named, 1);
  let nowMs = 0;
  const model = new MemoryStore({ clock: { now: () => nowMs } });
  const reservations: Reserved[] = [];

  /** One call on both, the model at the script's time. */
  const both = async <T>(what: string, call: (on: Store) => T | Promise<T>): Promise<T> => {
    const lua = await call(store);
    nowMs = lane.scriptNowMs;
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
      // Of those that were refused, and so never existed, a few are tried too.
      if (!isRefused || which === 0) reservations.push({ ttlMs: holdMs, counters });
      if (!isRefused) seen.held++;
    } else if (kind === "charge") await decide(asCharges(book.checks({ user }, undefined)), true, `e${run}-${i}`);
    else if (kind === "peek") await decide(book.checks({ user }, said), false, "");
    else if (kind === "reset" && which === 0) {
      const keys = book.keysOf(named[0]!.id, { user });
      await store.reset(keys);
      // A script tells the time; charges of its millisecond, before and after, are told apart only by the model.
      await new Promise((resolve) => setTimeout(resolve, 2));
      model.reset(keys);
    } else if (reserved !== undefined && kind !== "reset") await useReservation(kind, reserved, { amounts, i });
  }

  async function useReservation(
    kind: Step["kind"],
    reserved: Reserved,
    { amounts, i }: { amounts: Amounts; i: number },
  ): Promise<void> {
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
    const reply = await both(kind, async (on) => {
      // Some come again under the name of an earlier one.
      const { isNew, isOwn, counters } = await on.settle(
        kind === "forge" ? forged : reserved,
        told,
        `name${"abc"[i % 3]}`,
      );
      return { isNew, isOwn, counters };
    });
    const { state } = reply.counters[0]!;
    if (state === "settled") seen[reply.isNew ? "settled" : reply.isOwn ? "own" : "again"]++;
    else if (state === "expired" || state === "unknown") seen[state]++;
    if (reply.counters.some(({ held, charged }) => charged > held)) seen.overrun++;
    if (kind === "forge" && state !== "unknown") expect(state).toBe("unknown");
  }
}

test("reservations are decided, extended and settled alike by the scripts and by the models, over 200 000 calls", async () => {
  const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
  console.log(`reservations: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const schedule = fc.array(step, { minLength: 100, maxLength: 200, size: "max" });
  await replay(lanes[0]!, ...refusedExtension);
  await Promise.all(
    lanes.map(async (lane, i) => {
      const property = fc.asyncProperty(ruleSet, schedule, (rules, steps) => replay(lane, rules, steps));
      await fc.assert(property, { seed: seed + i, numRuns: Math.ceil(RUNS / LANES), endOnFailure: true });
    }),
  );
  console.log(`reservations: ${decisions} calls compared in ${runs} schedules; ${JSON.stringify(seen)}`);
  for (const [what, count] of Object.entries(seen)) expect([what, count > 0]).toEqual([what, true]);
  expect(decisions).toBeGreaterThanOrEqual(FEWEST_CALLS);
}, 1_200_000);
