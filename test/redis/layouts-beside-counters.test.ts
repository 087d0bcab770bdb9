/**
 * The bytes of what lies beside counters, as an instance wrote them once: blocks, holds, vacant turns, pools, and what instances share.
 * As in layouts.test.ts, an instance of another version may have written what lies in Redis now, or will read what this one writes.
 * The place of a request id is a cluster's (test/conformance/cluster.test.ts). A mark that charges were undone (`!u=`) has no bytes to
 * read: that it is there is all it says.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const year = { key: [], limit: 100, window: "3650d" } as const;
const user = { user: "ann" };

/** A reservation of 40 units of the rule below, as a decision gave it, and the digest that vouches for it. */
const entryId = "DcdjEZiUsLIBVYYG";
const reservation = `${entryId}.s.Wzg2NDAwMDAwLFtbInQiLDAsInsqfTp0OmYiLHsic3RvcmVkIjoiZml4ZWQtd2luZG93IiwibGltaXQiOjEwMCwid2luZG93TXMiOjMxNTM2MDAwMDAwMH0sInVuaXRzIiwxLCIiXV1d`;
const digest = "8srwfPcv7AzoEkeNT9r8W2";
const holdKey = `sluice:1:{*}!h2=${entryId}`;
const endMs = 4_102_444_800_000;
const tokens: Rule = {
  ...year,
  id: "t",
  algorithm: "fixed-window",
  cost: { attribute: "units" },
  estimate: { default: 40, ttl: "1d" },
};

describe.skipIf(whyMissing("redis"))("layouts beside counters", () => {
  let redis: RedisServer;
  let limiters: Limiter[] = [];

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    limiters = [];
    await redis.cli("FLUSHALL");
  });
  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    await redis?.stop();
  });

  const store = () => redisStore(redis.url, { deadlineMs: 5_000 });
  function limiterOf(...rules: Rule[]): Limiter {
    const limiter = createLimiter({ store: store(), rules });
    limiters.push(limiter);
    return limiter;
  }
  const get = async (key: string): Promise<string> => (await redis.cli("GET", key)).trimEnd();
  /** `script`: with `now`, in ms, and `call`. */
  const run = (script: string, ...keysAndArgs: string[]): Promise<string> => {
    const now =
      "local call, time = redis.call, redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000)";
    return redis.cli("EVAL", `${now} ${script}`, String(keysAndArgs.length), ...keysAndArgs);
  };

  test("a block: its end, its length and how many were before it; the next one is as long as the list says", async () => {
    const hour = { algorithm: "rolling-window", limit: 1, window: "1h" } as const;
    const blocked: Rule = { id: "r", key: ["user"], ...hour, blockFor: ["1h", "2h"] };
    const key = "sluice:1:{user=ann}:r:x";
    await run("return call('SET', KEYS[1], string.format('%.0f', now + 1000000) .. ' 3600000 1')", key);
    const limiter = limiterOf(blocked);
    const refused = await limiter.check(user);
    expect(refused).toMatchObject({ allowed: false, reason: "blocked" });
    expect(Math.round(refused.retryAfterMs / 10_000)).toBe(100);
    // One that has ended, and is remembered: what it began grows.
    await run("return call('SET', KEYS[1], string.format('%.0f', now - 1000) .. ' 3600000 1')", key);
    await limiter.close();
    limiters = [];
    const later = limiterOf(blocked);
    await later.check(user);
    expect(Math.round((await later.check(user)).retryAfterMs / 10_000)).toBe(720);
    expect(await get(key)).toMatch(/^\d{13} 7200000 2$/);
  });

  /** The counter behind the reservation holds its 40 units, charged as the hold was written. */
  async function putHold(state: string, more = ""): Promise<void> {
    await run("return call('SET', KEYS[1], struct.pack('<ddd', 40, now, now), 'PX', 100000)", "sluice:1:{*}:t:f");
    const text = `2 ${digest} ${endMs} ${state}\\n${entryId} ' .. string.format('%.0f', now) .. ' 40 0\\n${more}`;
    await run(`return call('SET', KEYS[1], '${text}', 'PX', 100000)`, holdKey);
  }
  const settled = (units: number) => ({ settled: true, charged: { t: units }, overrun: {} });
  const left = async (limiter: Limiter): Promise<unknown> => (await limiter.peek({}, { cost: 0 })).remaining;

  test("an open hold is settled, and is then written with the name of the settlement in letters behind its numbers", async () => {
    await putHold("open");
    const limiter = limiterOf(tokens);
    expect(await left(limiter)).toBe(60);
    expect(await limiter.settle(reservation, { units: 10 })).toEqual(settled(10));
    expect(await left(limiter)).toBe(90);
    const [header, row, costs, ...rest] = (await get(holdKey)).split("\n");
    expect([header, rest]).toEqual([`2 ${digest} ${endMs} settled`, []]);
    expect(row).toMatch(new RegExp(`^${entryId} \\d{13} 40 0$`));
    // An older version reads the digits of the line.
    expect(costs).toMatch(/^= 10 [a-z]+$/);
  });

  test("an extension is a row of its own, with the name that its entries have", async () => {
    await putHold("open");
    const limiter = limiterOf(tokens);
    expect((await limiter.extend(reservation, { units: 70 })).reservation).toMatchObject({ held: { t: 70 } });
    const [, , extension, ...rest] = (await get(holdKey)).split("\n");
    expect(extension).toMatch(new RegExp(`^${entryId}:x1 \\d{13} 30 0$`));
    expect(rest).toEqual([]);
  });

  test.each([
    ["without the name of its settlement, as an older version wrote it", "= 10\\n"],
    ["with it", "= 10 wwxxqeiefunpfwkma\\n"],
  ])("a hold that was settled, %s, answers as before, and is nobody's news", async (_, more) => {
    await putHold("settled", more);
    const limiter = limiterOf(tokens);
    const heard: string[] = [];
    limiter.on("settled", (id) => heard.push(id));
    expect(await limiter.settle(reservation, { units: 10 })).toEqual(settled(10));
    expect([await left(limiter), heard]).toEqual([60, []]);
  });

  test("a vacant turn is taken by the next request, whatever named it, and is written by units and name", async () => {
    const limiter = limiterOf({ id: "g", key: [], algorithm: "gcra", limit: 1, window: "100s", maxWait: "1h" });
    for (let i = 0; i < 4; i++) await limiter.check({});
    const vacant = "sluice:1:{*}:g:g^";
    await run("return call('ZADD', KEYS[1], now + 50000, '1:qp3b000x1')", vacant);
    expect(Math.round((await limiter.check({})).delayMs / 10_000)).toBe(5);
    expect((await redis.cli("EXISTS", vacant)).trim()).toBe("0");
    const last = await limiter.check({});
    await limiter.refund(last);
    const [member, score] = (await redis.cli("ZRANGE", vacant, "0", "-1", "WITHSCORES")).trim().split("\n");
    expect(member).toMatch(/^1:\S{9}$/);
    expect(Math.round((Number(score) - Date.now()) / 10_000)).toBe(40);
  });

  test("the pool of a region is eighteen doubles, in their order", async () => {
    const key = "{*}:r:u";
    await run(
      "return call('SET', KEYS[1], struct.pack('<' .. string.rep('d', 18), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18))",
      `sluice:1:${key}`,
    );
    const own = store();
    const { isMine, numbers } = await own.askForPool(key, { name: 99, onlySeq: 1, givesBack: "no", leaseMs: 1 });
    expect(isMine).toBe(false);
    expect(numbers).toEqual({
      units: 1,
      unitsEndMs: 2,
      used: 3,
      low: 4,
      renewAtMs: 5,
      lastMs: 6,
      arrived: 7,
      fetchingUntilMs: 8,
      refusedUntilMs: 9,
      refusedCost: 10,
      retryAtMs: 11,
      resetAtMs: 12,
      seq: 13,
      name: 14,
      told: 15,
      askedAtMs: 16,
      rate: 17,
      share: 18,
    });
    await own.askForPool(key, { name: 99, onlySeq: 0, givesBack: "no", leaseMs: 1 });
    expect((await redis.cli("STRLEN", `sluice:1:${key}`)).trim()).toBe("144");
    await own.close();
  });

  test("a report of utilisation, a limit that was moved, learned costs and a heartbeat mean what they meant", async () => {
    const own = store();
    const report = '["backend","eu"]';
    await run(
      `return call('HSET', KEYS[1], '${report}', '0.9 ' .. string.format('%.0f', now + 60000))`,
      "sluice:1:{~}utilisation",
    );
    expect(await own.shareReports()).toMatchObject([{ value: 0.9, source: "backend", key: "eu" }]);
    await own.shareReports({ report: { value: 0.25, source: "backend", key: "eu", ttlMs: 60_000 }, most: 10 });
    expect((await redis.cli("HGET", "sluice:1:{~}utilisation", report)).trim()).toMatch(/^0\.25 \d{13}$/);

    const limits = "sluice:1:{~}limits";
    await run(
      "call('HSET', KEYS[1], '', 'another ' .. string.format('%.0f', now + 900)) return call('HSET', KEYS[1], 'tuned', '42.5 ' .. string.format('%.0f', now))",
      limits,
    );
    const ask = { instance: "this", leadsMs: 1_000, limits: [{ rule: "tuned", limit: 7 }] };
    expect(await own.shareLimits(ask)).toEqual({ leads: false, limits: [42.5] });
    await redis.cli("DEL", limits);
    expect(await own.shareLimits(ask)).toEqual({ leads: true, limits: [7] });
    const written = (await redis.cli("HGETALL", limits)).trimEnd().split("\n");
    expect(written.join(" ")).toMatch(/^ this \d{13} tuned 7 \d{13}$/);

    await redis.cli("HSET", "sluice:1:{~tokens}costs", "12", "3.5", "40", "1");
    expect(await own.learn("tokens", new Map([[12, 1]]))).toEqual(
      new Map([
        [12, 4.5],
        [40, 1],
      ]),
    );

    await run("return call('ZADD', KEYS[1], now, 'another')", "sluice:1:{~}instances");
    const count = own.countInstances();
    await expect.poll(() => count.known).toBe(2);
    await count.stop();
    await own.close();
  });

  test("a note that a counter was freed ends the refusal that an instance remembers", async () => {
    const limiter = limiterOf({ ...year, id: "r", key: ["user"], algorithm: "fixed-window", limit: 1 });
    await limiter.check(user);
    expect((await limiter.check(user)).allowed).toBe(false);
    await redis.cli("DEL", "sluice:1:{user=ann}:r:f");
    expect((await limiter.check(user)).allowed).toBe(false);
    await run("return call('ZADD', KEYS[1], now, '{user=ann}:r:f')", "sluice:1:{~}freed");
    await expect.poll(async () => (await limiter.check(user)).allowed).toBe(true);
    // As this version notes it.
    await limiter.reset("r", user);
    await expect
      .poll(async () => (await redis.cli("ZRANGE", "sluice:1:{~}freed", "0", "-1")).trim())
      .toBe("{user=ann}:r:f");
  });
});
