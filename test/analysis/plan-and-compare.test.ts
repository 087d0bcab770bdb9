/** What `sluice plan` foretells and `sluice compare` measures, beside a real Redis. */
import { fileURLToPath } from "node:url";
import { type CountingRule, createLimiter } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compareAlgorithms } from "../../packages/server/src/analysis/compare.js";
import { measureRules } from "../../packages/server/src/analysis/measure-redis.js";
import { planFor } from "../../packages/server/src/analysis/plan.js";
import { edgeBursts } from "../../packages/server/src/analysis/synthetic-load.js";
import { withStore } from "../../packages/server/src/cli/embedded-redis.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { runSluice } from "../service/running-service.js";

const VALUE_LENGTH = 12;
/** Counts of keys are just under a power of two: a table that was just doubled is moved by and by, and there twice until then. */
const workloads: readonly (readonly [name: string, keys: number, rules: CountingRule[]])[] = [
  ["token buckets", 32_000, [{ id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 100, window: "1h" }]],
  [
    "fixed windows by two attributes",
    32_000,
    [{ id: "fixed", key: ["user", "path"], algorithm: "fixed-window", limit: 10, window: "1d" }],
  ],
  ["packed logs", 8_000, [{ id: "packed", key: ["user"], algorithm: "rolling-window", limit: 200, window: "1h" }]],
  [
    "short sorted sets",
    4_000,
    [{ id: "short", key: ["user"], algorithm: "rolling-window", storage: "sorted-set", limit: 100, window: "1h" }],
  ],
  [
    "long sorted sets",
    500,
    [{ id: "long", key: ["user"], algorithm: "rolling-window", storage: "sorted-set", limit: 500, window: "1h" }],
  ],
  [
    "three rules together",
    8_000,
    [
      { id: "gcra", key: ["user"], algorithm: "gcra", limit: 10, window: "1m" },
      { id: "sliding", key: ["user"], algorithm: "sliding-counter", limit: 1_000, window: "1h" },
      { id: "log", key: ["user"], algorithm: "rolling-window", limit: 50, window: "1d" },
    ],
  ],
];

describe.skipIf(whyMissing("redis"))("on a real Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  const usedMemory = async (): Promise<number> =>
    Number(/used_memory:(\d+)/.exec(await redis.cli("INFO", "memory"))![1]);

  test.each(workloads)(
    "%s: the plan for %i keys is within 5 %% of used_memory and of MEMORY USAGE",
    async (_, keys, rules) => {
      await redis.cli("FLUSHALL");
      // A rate at which every key is full.
      const plan = planFor({
        rules,
        keys,
        rate: 1e9,
        valueLength: VALUE_LENGTH,
        instances: 1,
        nodeBytes: 2 ** 40,
        microseconds: 1,
        isMeasured: true,
      });
      // What a connection and the cache of scripts take is no counter's.
      const warm = createLimiter({ store: redisStore(redis.url, { deadlineMs: 30_000 }), rules });
      await warm.charge({ user: "warm", path: "warm" });
      await warm.close();
      const before = await usedMemory();
      for (const rule of rules) {
        const limiter = createLimiter({ store: redisStore(redis.url, { deadlineMs: 30_000 }), rules: [rule] });
        for (let from = 0; from < keys; from += 500) {
          await Promise.all(
            Array.from({ length: 500 }, (_unused, i) => {
              const value = String(from + i).padStart(VALUE_LENGTH, "0");
              return limiter.charge({ user: value, path: value }, { cost: rule.limit });
            }),
          );
        }
        await limiter.close();
      }
      const empty = planFor({
        rules: [],
        keys,
        rate: 1,
        valueLength: VALUE_LENGTH,
        instances: 1,
        nodeBytes: 2 ** 40,
        microseconds: 1,
        isMeasured: true,
      });
      const foretold = plan.memory.fullBytes - empty.memory.fullBytes;
      const used = (await usedMemory()) - before;
      console.log(`used_memory ${used}, foretold ${foretold}: ${(foretold / used).toFixed(3)}`);
      expect(Math.abs(foretold / used - 1)).toBeLessThan(0.05);
      for (const { rule, bytesPerFullKey } of plan.rules) {
        const [, key] = (await redis.cli("SCAN", "0", "MATCH", `*:${rule}:*`, "COUNT", "1000")).split("\n");
        const measured = Number(await redis.cli("MEMORY", "USAGE", key!, "SAMPLES", "0"));
        expect(Math.abs(bytesPerFullKey / measured - 1), `${rule}: ${bytesPerFullKey} of ${measured}`).toBeLessThan(
          0.05,
        );
      }
    },
  );

  test("a measurement leaves the data of others as it was, and nothing of its own", async () => {
    await redis.cli("FLUSHALL");
    await redis.cli("SET", "mine", "1");
    const rules: CountingRule[] = [
      { id: "all", key: [], algorithm: "fixed-window", limit: 5, window: "1h" },
      { id: "places", key: ["user"], algorithm: "concurrency", limit: 3 },
    ];
    const limiter = createLimiter({ store: redisStore(redis.url), rules });
    await limiter.check({ user: "bob" });
    await limiter.close();
    const keysBefore = (await redis.cli("KEYS", "*")).split("\n").sort();
    const values = async () => await redis.cli("GET", keysBefore.find((key) => key.includes("all"))!);
    const valueBefore = await values();
    const measured = await measureRules({
      url: redis.url,
      rules,
      keys: 50,
      unitsOf: ({ limit }) => limit,
      requests: 500,
      valueLength: 16,
    });
    expect((await redis.cli("KEYS", "*")).split("\n").sort()).toEqual(keysBefore);
    expect(await values()).toBe(valueBefore);
    expect(measured.keys).toBe(100);
    expect([...measured.bytesPerKey.keys()].sort()).toEqual(["all", "places"]);
    expect(measured.commands).toBeGreaterThan(1);
  });

  test("requests are timed that pass, however full the keys are", async () => {
    await redis.cli("FLUSHALL");
    const window = "1h";
    const rules: CountingRule[] = [
      { id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 3, window },
      { id: "gcra", key: ["user"], algorithm: "gcra", limit: 3, window, burst: 2 },
      { id: "log", key: ["user"], algorithm: "rolling-window", limit: 3, window, minInterval: "1m" },
      { id: "set", key: ["user"], algorithm: "rolling-window", storage: "sorted-set", limit: 3, window, cost: 2 },
      { id: "places", key: ["user"], algorithm: "concurrency", limit: 3 },
    ];
    const full = { url: redis.url, rules, keys: 20, unitsOf: ({ limit }: CountingRule) => limit, valueLength: 16 };
    const measured = await measureRules({ ...full, requests: 200 });
    expect(measured.refused).toBe(0);
    // The bytes are those of the rules as they are, without the room.
    expect(measured.bytesPerKey.get("log")).toBeLessThan(150);
    expect(await redis.cli("DBSIZE")).toBe("0");
  });

  test("an embedded Redis lives as long as the measurement, and ends where that fails", async () => {
    const measure = (url: string) =>
      measureRules({ url, rules: workloads[0]![2], keys: 10, unitsOf: () => 1, requests: 20, valueLength: 16 });
    let url = "";
    const measured = await withStore("embedded", (own) => {
      url = own;
      return measure(own);
    });
    expect(measured.keys).toBe(10);
    await expect(measure(url)).rejects.toThrow(/store: could not be reached/);
    const failed = withStore("embedded", async (own) => {
      url = own;
      throw new Error("the measurement failed");
    });
    await expect(failed).rejects.toThrow("the measurement failed");
    await expect(measure(url)).rejects.toThrow(/store: could not be reached/);
    expect(await withStore("redis://elsewhere", async (given) => given)).toBe("redis://elsewhere");
  });

  test("compare: the paper's tables, from measurement", async () => {
    const options = { limit: 100, window: "1m", windowMs: 60_000, key: ["client"], requests: 300 };
    const load = edgeBursts({ limit: 100, windowMs: 60_000, windows: 4 });
    const { rows, redisVersion } = await compareAlgorithms({ ...options, load, store: redis.url });
    expect(redisVersion).toMatch(/^\d+\.\d+/);
    const found = Object.fromEntries(rows.map((row) => [row.algorithm, row]));
    expect(found["fixed-window"]).toMatchObject({
      requests: 800,
      worstWindow: 200,
      overLimit: 1,
      paperBytes: 16,
      paperAccuracy: "low",
    });
    expect(found["rolling-window, packed"]).toMatchObject({
      refused: 400,
      worstWindow: 100,
      overLimit: 0,
      paperBytes: 800,
    });
    expect(found["rolling-window, sorted-set"]).toMatchObject({ refused: 400, worstWindow: 100, overLimit: 0 });
    expect(found["token-bucket"]!.worstWindow).toBeGreaterThan(100);
    expect(found.concurrency!.worstWindow).toBeUndefined();
    for (const { bytesPerKey } of rows) expect(bytesPerKey).toBeGreaterThan(90);
    expect(found["rolling-window, packed"]!.bytesPerKey!).toBeLessThan(
      found["rolling-window, sorted-set"]!.bytesPerKey! / 5,
    );
  });
});

test.each(["compare", "plan"])(
  "%s with a store that does not answer has failed: status 1, not a misuse",
  async (command) => {
    const draft = fileURLToPath(new URL("../../examples/analysis/draft.yaml", import.meta.url));
    const options = command === "plan" ? ["--rules", draft, "--keys", "1", "--rate", "1", "--measure"] : [];
    const { status, stderr } = await runSluice([command, "--store", "redis://127.0.0.1:1", ...options]);
    expect(stderr).toContain("ECONNREFUSED 127.0.0.1:1");
    expect(status).toBe(1);
  },
);

test("a store that cannot be reached, and a cluster, are named", async () => {
  const ask = (url: string) =>
    measureRules({ url, rules: [], keys: 1, unitsOf: () => 1, requests: 1, valueLength: 16 });
  await expect(ask("redis://127.0.0.1:1")).rejects.toMatchObject({
    code: "store-unavailable",
    message: expect.stringContaining(
      "store: could not be reached: connect ECONNREFUSED 127.0.0.1:1; check its address",
    ),
  });
  await expect(ask("redis+cluster://127.0.0.1:1")).rejects.toThrow(/expected one Redis to measure on, got a cluster/);
});
