/**
 * The plain scripts against the lean ones that they stand in for: from the same stored bytes, under the same numbers and in the same
 * millisecond, both answer alike and leave the same bytes with the same end. The bytes are random, so that states are met which take clocks,
 * edits, refunds and saturation together to come about.
 */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { scriptSources } from "../../packages/sluice/src/store/redis/lua/scripts.generated.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const seed = Number(process.env.SLUICE_TEST_SEED ?? Date.now() % 2 ** 31);

/** Instants are said as ms from now: what is now is known when the bytes are written. */
type Stored = (nowMs: number) => Buffer;

interface Case {
  readonly letter: "b" | "g" | "f";
  readonly policy: (nowMs: number) => readonly number[];
  /** Undefined: a counter that does not exist. */
  readonly counters: readonly (Stored | undefined)[];
}

const doubles = (...numbers: readonly number[]): Buffer => Buffer.from(Float64Array.from(numbers).buffer);
const fromNow = fc.oneof(fc.constantFrom(0, 0, -1, 1), fc.integer({ min: -100, max: 20 }));
const countersOf = (stored: fc.Arbitrary<Stored>) =>
  fc.array(fc.option(stored, { nil: undefined, freq: 5 }), { minLength: 1, maxLength: 4 });

const bucketCase = fc
  .record({
    letter: fc.constantFrom("b" as const, "g" as const),
    capacity: fc.constantFrom(1, 2, 5, 50),
    amount: fc.constantFrom(1, 3, 50, 1_000),
    scaleMs: fc.constantFrom(1, 7, 100, 10_000),
  })
  .chain(({ letter, capacity, amount, scaleMs }): fc.Arbitrary<Case> => {
    const stored = fc
      .record({
        unit: fc.constantFrom(scaleMs, scaleMs, scaleMs, 1, 7, 100),
        full: fc.double({ min: 0, max: 2, noNaN: true }),
        last: fromNow,
        age: fc.constantFrom(0, 1, 5, 100, 2 ** 32 - 2, 2 ** 32 - 1),
        given: fc.option(fc.integer({ min: 1, max: 1_000 })),
        nameless: fc.option(fromNow),
        hasGap: fc.boolean(),
        /** The amount of the last refill, as it is written; 1 is not. */
        refilled: fc.constantFrom(amount, amount, 1, 7),
      })
      .map(({ unit, full, last, age, given, nameless, hasGap, refilled }): Stored => {
        return (nowMs) => {
          const bucket = doubles(Math.floor(full * capacity * unit), nowMs + last, unit);
          const parts = [bucket, Buffer.from(Uint32Array.of(age).buffer)];
          if (given === null && refilled !== 1) parts.push(Buffer.from(Uint32Array.of(refilled).buffer));
          if (given !== null) parts.push(doubles(given, nameless === null ? 0 : nowMs + nameless));
          if (given !== null && refilled !== 1) parts.push(doubles(0, refilled, 0));
          if (given !== null && hasGap) parts.push(doubles(nowMs - 3, 200, Math.min(given, 20)));
          return Buffer.concat(parts);
        };
      });
    return countersOf(stored).map((counters) => ({ letter, policy: () => [capacity, amount, scaleMs], counters }));
  });

const windowCase = fc
  .record({
    limit: fc.constantFrom(0, 1, 2, 5, 10),
    windowMs: fc.constantFrom(1, 3, 10, 100, 1_000, 86_400_000),
    calendar: fc.option(fc.record({ since: fc.integer({ min: 0, max: 30 }), lengthMs: fc.constantFrom(20, 1_000) })),
  })
  .chain(({ limit, windowMs, calendar }): fc.Arbitrary<Case> => {
    const stored = fc
      .record({
        count: fc.constantFrom(0, 1, Math.max(0, limit - 1), limit, limit + 3, Number.MAX_SAFE_INTEGER),
        last: fc.oneof(fromNow, fc.constantFrom(windowMs, -windowMs, 2 * windowMs, 5 * windowMs)),
        born: fc.integer({ min: -2_000, max: 3 }),
      })
      .map(
        ({ count, last, born }): Stored =>
          (nowMs) =>
            doubles(count, nowMs + last, nowMs + born),
      );
    const boundaries = (nowMs: number): number[] =>
      [0, 1, 2, 3, 4].map((n) => (calendar === null ? 0 : nowMs - calendar.since + n * calendar.lengthMs));
    return countersOf(stored).map((counters) => {
      return { letter: "f", policy: (nowMs) => [limit, windowMs, ...boundaries(nowMs)], counters };
    });
  });

describe.skipIf(whyMissing("redis"))("plain scripts", () => {
  let server: RedisServer;
  let redis: Redis;
  let names = 0;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.port, "127.0.0.1");
  });

  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  /** What a script answers and leaves; undefined where it refuses to decide. */
  async function outcomes({ letter, policy, counters }: Case) {
    const nowMs = Date.now();
    const run = redis.multi();
    const scripts = [`plain-${letter}`, `single-${letter}`] as const;
    const keysOf = scripts.map(() => counters.map(() => `k${names++}`));
    for (const [i, stored] of counters.entries())
      for (const keys of keysOf) if (stored !== undefined) run.set(keys[i]!, stored(nowMs), "PXAT", nowMs + 1_000);
    for (const [s, name] of scripts.entries())
      run.eval(scriptSources[name], counters.length, ...keysOf[s]!, 1, ...policy(nowMs));
    for (const key of keysOf.flat()) run.getBuffer(key).pexpiretime(key);
    const replies = (await run.exec())!;
    const left = replies.splice(-4 * counters.length).map(([, value]) => value);
    return replies.splice(-2).map(([error, reply], s) => {
      if (error !== null || !Array.isArray(reply)) return undefined;
      const [nowUs, ...verdicts] = reply as [number, ...number[]];
      const written = counters.map((_, i) => left.slice(2 * (s * counters.length + i)).slice(0, 2));
      return { nowMs: Math.floor(nowUs / 1_000), verdicts, written };
    });
  }

  test("answer and write what the scripts do that they stand in for, whatever is stored", async () => {
    console.log(`plain-scripts: seed ${seed} (SLUICE_TEST_SEED repeats it)`);
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(bucketCase, windowCase), async (asked) => {
        const [plain, single] = await outcomes(asked);
        // The plain one leaves rare states to the other. Between the two, a millisecond may have ended.
        if (plain === undefined || single === undefined || plain.nowMs !== single.nowMs) return;
        expect(plain.verdicts).toEqual(single.verdicts);
        for (const [i, found] of plain.written.entries()) {
          // A counter that ends with this millisecond may be gone before it is read.
          if (found[0] === null || single.written[i]![0] === null) continue;
          expect(found).toEqual(single.written[i]);
          compared++;
        }
      }),
      { seed, numRuns: 2_000 },
    );
    expect(compared).toBeGreaterThan(700);
  });
});
