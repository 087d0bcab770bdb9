/**
 * The bytes of every stored layout, as an instance wrote them once. An instance of another version may have written what lies in Redis
 * now: a layout that changes gets a name of its own (the rule stands in keys.ts), or one of these tests fails.
 */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";

const atMs = 1_794_804_076_699;
const endMs = 1_826_340_076_699;
const year = { key: [], limit: 5, window: "365d" } as const;

/** A counter after one request of cost 2, for each letter: a string in hexadecimal, or a sorted set; and what it means. */
const counters: readonly { rule: Rule; stored: string | readonly string[]; means: Record<string, number> }[] = [
  {
    rule: { id: "b", algorithm: "token-bucket", ...year },
    stored: "000000c0037f074200b0098d2a1e7a42000000c0037ff741",
    means: { missing: 2, lastMs: atMs },
  },
  {
    rule: { id: "g", algorithm: "gcra", ...year },
    stored: "000000c0037f074200b0098d2a1e7a42000000c0037ff741",
    means: { missing: 2, lastMs: atMs },
  },
  {
    rule: { id: "f", algorithm: "fixed-window", ...year },
    stored: "000000000000004000b0098d2a1e7a4200b0098d2a1e7a42",
    means: { count: 2, lastMs: atMs },
  },
  {
    rule: { id: "s", algorithm: "sliding-counter", ...year },
    stored: "0000000000000000000000000000004000b0098d2a1e7a42000000b0c45e1d42",
    means: { previous: 0, current: 2, lastMs: atMs },
  },
  {
    rule: { id: "z", algorithm: "rolling-window", storage: "sorted-set", ...year },
    stored: [String(atMs), "qp3b000x1", String(atMs), "qp3b000x1:2"],
    means: { count: 2, lastMs: atMs },
  },
  {
    rule: { id: "p", algorithm: "rolling-window", storage: "packed", ...year },
    stored: "c00002000000000002a1e2a8d09ba1e2a8d09ba1e2a8d09b",
    means: { count: 2, lastMs: atMs },
  },
  {
    rule: { id: "c", algorithm: "concurrency", key: [], limit: 5, ttl: "365d" },
    stored: [String(endMs), "EsHSnxnTPffPS48Q.31536000000", String(endMs), "EsHSnxnTPffPS48Q.31536000000:2"],
    means: { count: 2, latestEndMs: endMs },
  },
  // After a refund: as it was before its place was kept, and with it.
  {
    rule: { id: "b", algorithm: "token-bucket", ...year },
    stored: "000000c0037f074200b0098d2a1e7a42000000c0037ff741e8030000000000c0037ff741",
    means: { missing: 2, lastMs: atMs },
  },
  {
    rule: { id: "b", algorithm: "token-bucket", ...year },
    stored:
      "000000c0037f074200b0098d2a1e7a42000000c0037ff741e8030000000000c0037ff74100000000000000000010098d2a1e7a42000000d0429f1142000000c0037ff741",
    means: { missing: 2, lastMs: atMs },
  },
  // Refilled by another amount than 1: without and with what was given back.
  {
    rule: { id: "b", algorithm: "token-bucket", ...year },
    stored: "000000c0037f074200b0098d2a1e7a42000000c0037ff741e803000007000000",
    means: { missing: 2, lastMs: atMs },
  },
  {
    rule: { id: "b", algorithm: "token-bucket", ...year },
    stored:
      "000000c0037f074200b0098d2a1e7a42000000c0037ff741e8030000000000c0037ff741000000000000000000000000000000000000000000001c4000000000000000000010098d2a1e7a42000000d0429f1142000000c0037ff741",
    means: { missing: 2, lastMs: atMs },
  },
];

const receipt = (entryId: string): string =>
  JSON.stringify({
    entryId,
    rulesVersion: 1,
    checks: [
      {
        plan: {
          rule: "r",
          mode: "enforce",
          policy: { stored: "fixed-window", limit: 3, windowMs: 31_536_000_000 },
          keyEnd: "}:r:f",
          onStoreFailure: "allow",
        },
        key: "{user=ann}:r:f",
        cost: 1,
        live: -1,
      },
    ],
  });

/** The record of `check({ user: "ann" }, { id: "fixture" })`, by layout: its key, and its text. */
const records = {
  1: { key: "sluice:1:{*}!fixture", text: `1794804076917 3 2 2747923083\n${receipt("")}` },
  2: {
    key: "sluice:1:{*}!2=fixture",
    text: `2 T2NP8V3fhaQaIsSPhxmMg6 TylW1ud46 TylW1ud46\n1794804076917 3 2 2747923083\n${receipt("TylW1ud46")}`,
  },
  3: {
    key: "sluice:1:{*}!3=fixture",
    text: `3 T2NP8V3fhaQaIsSPhxmMg6 TylW1ud46 TylW1ud46\n1794804076917 3 2 2747923083\n${receipt("TylW1ud46")}`,
  },
} as const;

const rule: Rule = { id: "r", key: ["user"], algorithm: "fixed-window", limit: 3, window: "365d" };
const user = { user: "ann" };

describe.skipIf(whyMissing("redis"))("layouts in Redis", () => {
  let redis: RedisServer;
  let limiter: Limiter | undefined;

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    await limiter?.close();
    await redis.cli("FLUSHALL");
  });
  afterAll(async () => {
    await limiter?.close();
    await redis?.stop();
  });

  function limiterOf(rules: readonly Rule[]): Limiter {
    limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 5_000 }), rules });
    return limiter;
  }

  test.each(counters)("a counter of the letter $rule.id means what it meant", async ({ rule, stored, means }) => {
    const key = `sluice:1:{*}:${rule.id}:${rule.id}`;
    if (typeof stored !== "string") await redis.cli("ZADD", key, ...stored);
    // The shell of redis-cli cannot carry every byte; Lua's own escapes can.
    else {
      const bytes = stored.replace(/../g, (hex) => `\\${String(Number.parseInt(hex, 16)).padStart(3, "0")}`);
      await redis.cli("EVAL", `return redis.call('SET', KEYS[1], '${bytes}')`, "1", key);
    }
    const { rules } = await limiterOf([rule]).explain({});
    expect(rules[0]!.state).toEqual(means);
  });

  test.each([
    ["two numbers, as before slots on the move counted them", "<dd"],
    ["three numbers", "<ddd"],
  ])("units that holders fetched ahead count, from a head of %s", async (_, format) => {
    const pack = `local ends = redis.call('TIME')[1] * 1000 + 50000
      redis.call('HSET', KEYS[1], '', struct.pack('${format}', 3, ends, 7), 'holder', struct.pack('<dddddd', 1, 0, 3, 3, 0, ends))
      return redis.call('PEXPIRE', KEYS[1], 60000)`;
    await redis.cli("EVAL", pack, "1", "sluice:1:{*}:f:f~");
    const limiter = limiterOf([{ ...counters[2]!.rule, prefetch: "20s" } as Rule]);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(2);
    const [first, second] = [await limiter.check({}, { cost: 2 }), await limiter.check({})];
    expect([first.allowed, second.allowed]).toEqual([true, false]);
  });

  test("a record of layout 3 is the answer to its request, and to no other; its refund leaves a tombstone", async () => {
    await redis.cli("SET", records[3].key, records[3].text, "PX", "60000");
    const limiter = limiterOf([rule]);
    expect(await limiter.check(user, { id: "fixture" })).toMatchObject({
      allowed: true,
      limit: 3,
      remaining: 2,
      resetAfterMs: 2_747_923_083,
      rulesVersion: 1,
    });
    expect((await limiter.peek(user, { cost: 0 })).remaining).toBe(3);
    await expect(limiter.check({ user: "bob" }, { id: "fixture" })).rejects.toMatchObject({ code: "invalid-request" });
    expect([await limiter.refund("fixture"), await limiter.refund("fixture")]).toEqual([true, false]);
    expect(await redis.cli("GET", records[3].key)).toMatch(/^3 tombstone \d{13} TylW1ud46$/);
    expect(Number(await redis.cli("PTTL", records[3].key))).toBeGreaterThan(0);
  });

  /** Five a year. One was charged, two more that were given back without a name, two by the record's request, and one after it. */
  const bucket: Rule = { id: "b", algorithm: "token-bucket", ...year };
  const unit = 31_536_000_000 / 5;
  const bucketReceipt = receipt("TylW1ud46")
    .replace("{user=ann}:r:f", "{*}:b:b")
    .replace('"rule":"r"', '"rule":"b"')
    .replace(
      /\{"stored":[^}]*\}/,
      JSON.stringify({ stored: "token-bucket", limit: 5, capacity: 5, amount: 1, scaleMs: unit }),
    )
    .replace('"cost":1', '"cost":2');
  const putBucket = `local time = redis.call('TIME')
    local now, unit = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1])
    redis.call('SET', KEYS[1], struct.pack('<dddI4dd', 4 * unit, now, unit, 1000, 2 * unit, now), 'PX', 100000)
    local numbers = string.format('%.0f', now) .. ' 3 2 ' .. string.format('%.0f', 3 * unit) .. ARGV[3]
    return redis.call('SET', KEYS[2], ARGV[2] .. numbers .. '\\n' .. ARGV[4], 'PX', 60000)`;

  test.each([
    ["without what had been given back before, as an older instance wrote it", "", 2],
    ["with it", ` ${2 * unit}`, 3],
  ])("a record of layout 3 of a bucket's charge, %s, is read for its refund", async (_, given, remaining) => {
    const header = records[3].text.split("\n")[0]!;
    const args = [String(unit), `${header}\n`, given, bucketReceipt];
    await redis.cli("EVAL", putBucket, "2", "sluice:1:{*}:b:b", records[3].key, ...args);
    const limiter = limiterOf([bucket]);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(1);
    expect(await limiter.refund("fixture")).toBe(true);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(remaining);
  });

  test("a record tells what had been given back behind the numbers that an older instance reads", async () => {
    const limiter = limiterOf([bucket]);
    const first = await limiter.check({}, { cost: 2 });
    await limiter.check({});
    await limiter.refund(first);
    await limiter.check({}, { id: "fixture" });
    const [header, numbers] = (await redis.cli("GET", records[3].key)).split("\n");
    expect(header).toMatch(/^3 /);
    expect(numbers).toMatch(/^\d{13} 3 3 \d+ \d+$/);
    expect(Math.round(Number(numbers!.split(" ")[4]) / unit)).toBe(2);
  });

  /** Seven a year: their unit is the whole year, so the amount of a refill is 7. */
  const seven: Rule = { id: "b", algorithm: "token-bucket", key: [], limit: 7, window: "365d" };

  test("a bucket is written with the amount of its refill, unless that is 1", async () => {
    const bytesOf = async (rule: Rule): Promise<number> => {
      await redis.cli("FLUSHALL");
      const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 5_000 }), rules: [rule] });
      await limiter.check({}, { cost: 2 });
      const plain = Number(await redis.cli("STRLEN", "sluice:1:{*}:b:b"));
      await limiter.check({});
      await limiter.close();
      expect(Number(await redis.cli("STRLEN", "sluice:1:{*}:b:b"))).toBe(plain);
      return plain;
    };
    expect([await bytesOf(bucket), await bytesOf(seven)]).toEqual([28, 32]);
  });

  test("a bucket that an older instance wrote, without that amount, gives nothing back, and counts what it counted", async () => {
    const limiter = limiterOf([seven]);
    const first = await limiter.check({}, { cost: 2 });
    const cut = "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 28), 'KEEPTTL')";
    await redis.cli("EVAL", cut, "1", "sluice:1:{*}:b:b");
    await limiter.refund(first);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(5);
    // What is charged from now on can be refunded.
    const second = await limiter.check({}, { cost: 3 });
    await limiter.refund(second);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(5);
  });

  test.each([
    ["behind", `3 tombstone 1794804076917 TylW1ud46`],
    ["ahead of now, as a clock that was ahead leaves it", `3 tombstone 9794804076917 TylW1ud46`],
  ])("a tombstone of layout 3 %s makes nobody late who was sent since", async (_, text) => {
    await redis.cli("SET", records[3].key, text, "PX", "60000");
    const limiter = limiterOf([rule]);
    expect(await limiter.refund("fixture")).toBe(false);
    for (const remaining of [2, 2]) expect(await limiter.check(user, { id: "fixture" })).toMatchObject({ remaining });
  });

  test.each([1, 2] as const)(
    "a record of layout %i is neither read nor written: older instances have it",
    async (old) => {
      const text = `R${records[old].text}`;
      await redis.cli("SET", records[old].key, text, "PX", "60000");
      const limiter = limiterOf([rule]);
      for (const remaining of [2, 2]) expect((await limiter.check(user, { id: "fixture" })).remaining).toBe(remaining);
      expect((await limiter.peek(user, { cost: 0 })).remaining).toBe(2);
      expect(await limiter.refund("fixture")).toBe(true);
      expect((await redis.cli("GET", records[old].key)).trimEnd()).toBe(text);
    },
  );

  test("a record is written as its layout says", async () => {
    await limiterOf([rule]).check(user, { id: "fixture" });
    const names = (await redis.cli("KEYS", "*[*n]}*")).trim().split("\n").sort();
    expect(names).toEqual([records[3].key, "sluice:1:{user=ann}:r:f"]);
    const written = (await redis.cli("GET", records[3].key)).trimEnd();
    expect(written).toMatch(/^3 T2NP8V3fhaQaIsSPhxmMg6 (\S{9}) \1\n\d{13} 3 2 \d+\n\{"entryId":"\1","rulesVersion":1,/);
  });

  test("a place that an older instance gave counts, can be released, and cannot be renewed", async () => {
    const limiter = limiterOf([{ id: "c", algorithm: "concurrency", key: [], limit: 2, ttl: "1h" }]);
    await redis.cli("ZADD", "sluice:1:{*}:c:c", String(Date.now() + 3_600_000), "oldLease");
    const id = `oldLease.s.${Buffer.from('[["{*}:c:c",1,3600000]]').toString("base64url")}`;
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(1);
    expect([await limiter.release(id), await limiter.release(id)]).toEqual([true, false]);
    expect((await limiter.peek({}, { cost: 0 })).remaining).toBe(2);
    await redis.cli("ZADD", "sluice:1:{*}:c:c", String(Date.now() + 3_600_000), "oldLease");
    expect(await limiter.renew(id)).toBe(0);
  });

  test("a lease's id that was edited, to a longer term or to more places, renews nothing", async () => {
    const limiter = limiterOf([{ id: "c", algorithm: "concurrency", key: [], limit: 2, ttl: "5s" }]);
    const { lease } = await limiter.check({});
    const [name] = lease!.id.split(".");
    const edited = (held: string): string => `${name}.s.${Buffer.from(held).toString("base64url")}`;
    expect(await limiter.renew(edited('[["{*}:c:c",1,315360000000]]'))).toBe(0);
    expect(await limiter.renew(edited('[["{*}:c:c",1,5001]]'))).toBe(0);
    expect(await limiter.renew(lease!.id)).toBe(5_000);
    expect(Number(await redis.cli("PTTL", "sluice:1:{*}:c:c"))).toBeLessThanOrEqual(5_000);
    expect(await limiter.renew(edited('[["{*}:c:c",2,5000]]'))).toBe(0);
  });
});
