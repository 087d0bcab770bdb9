/**
 * Rules that are edited between a charge and its refund, on every algorithm: a refund never lets others use more than they could had its charge
 * never been made.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryStore } from "../../packages/sluice/src/store/memory/memory-store.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { type Counted, EditedRun, editions, FORMS, stepsOf } from "./edited-schedules.js";
import { ComparedStores } from "./edited-twins.js";

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);
/** Not a multiple of any window: alignment to the epoch is part of what is tested. */
const START_MS = 1_795_000_000_123;

test.each(FORMS)("memory, %j: no refund after an edit frees what others charged", async (form) => {
  console.log(`edited-rules: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
  const counted: Counted = { refunds: 0, refundsAfterEdits: 0, givenAfterEdits: 0 };
  await fc.assert(
    fc.asyncProperty(editions(400), stepsOf(250), async (states, schedule) => {
      let nowMs = START_MS;
      const store = new MemoryStore({ clock: { now: () => nowMs } });
      const run = new EditedRun(form, states, counted, { id: "r", store });
      for (const step of schedule) {
        nowMs += step.waitMs;
        await run.step(step);
      }
    }),
    { seed, numRuns: 2_000 },
  );
  console.log(`edited-rules: ${JSON.stringify(counted)}`);
  expect(counted.refundsAfterEdits).toBeGreaterThan(2_000);
  expect(counted.givenAfterEdits).toBeGreaterThan(100);
});

/** Schedules at once, each with a counter and a connection of its own: while one waits for time to pass, others go on. */
const LANES = 24;
const RUNS = Number(process.env.SLUICE_TEST_RUNS ?? 300);

describe.skipIf(whyMissing("redis"))("on Redis", () => {
  let redis: RedisServer;
  let lanes: ComparedStores[] = [];
  let runs = 0;

  beforeAll(async () => {
    redis = await startRedis();
    lanes = Array.from({ length: LANES }, () => new ComparedStores(redis.url));
    for (const lane of lanes) expect(await lane.ready()).toBe(true);
  });
  afterAll(async () => {
    for (const lane of lanes) await lane.close();
    await redis?.stop();
  });

  test.each(FORMS)(
    "%j: no refund after an edit frees what others charged, and the model decides alike",
    async (form) => {
      const counted: Counted = { refunds: 0, refundsAfterEdits: 0, givenAfterEdits: 0 };
      const schedules = fc.sample(fc.tuple(editions(250), stepsOf(40)), { seed, numRuns: RUNS });
      const before = lanes.reduce((sum, lane) => sum + lane.compared, 0);
      const play = async (lane: ComparedStores): Promise<void> => {
        for (let next = schedules.pop(); next !== undefined; next = schedules.pop()) {
          const [states, schedule] = next;
          const run = new EditedRun(form, states, counted, { id: `r${runs++}`, store: lane });
          lane.isUndecided = false;
          for (const step of schedule) {
            if (step.waitMs > 0) await new Promise((resolve) => setTimeout(resolve, step.waitMs));
            await run.step(step).catch((error) => {
              schedules.length = 0;
              // Schedules depend on real time: shrinking one would find others.
              throw new Error(`${error.message}; seed ${seed}: ${JSON.stringify(next)}`, { cause: error });
            });
          }
        }
      };
      // All of them end before the next test has the lanes.
      const plays = lanes.map(play);
      await Promise.allSettled(plays);
      await Promise.all(plays);
      const compared = lanes.reduce((sum, lane) => sum + lane.compared, 0) - before;
      console.log(`edited-rules: Redis: ${JSON.stringify(counted)}, ${compared} decisions compared`);
      expect(counted.refundsAfterEdits).toBeGreaterThan(RUNS);
      expect(compared).toBeGreaterThan(RUNS * 10);
    },
    120_000,
  );
});
