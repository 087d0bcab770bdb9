/** A Redis that is not there, not answering, or gone half-way: the answer comes in time, by each rule's policy. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { type RedisStoreOptions, redisStore } from "sluice/redis";
import { afterEach, expect, test as vitest } from "vitest";
import { whyMissing } from "../../scripts/system-components.mjs";
import { blockEventLoop } from "../harness/block-event-loop.js";
import { freePort } from "../harness/free-port.js";
import { startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy } from "../harness/tcp-fault-proxy.js";

const test = vitest.skipIf(whyMissing("redis"));

const base = { key: ["user"], algorithm: "fixed-window", limit: 2, window: "1h" } as const;
const rules: Rule[] = [
  { id: "open", match: { policy: "allow" }, ...base, onStoreFailure: "allow" },
  { id: "shut", match: { policy: "deny" }, ...base, onStoreFailure: "deny" },
  { id: "near", match: { policy: "local" }, ...base, onStoreFailure: "local" },
  { id: "watched", match: { policy: "shadow" }, ...base, mode: "shadow", onStoreFailure: "deny" },
];

const limiters: Limiter[] = [];
function limiterAt(url: string, options: RedisStoreOptions = {}, instances = 1): Limiter {
  const limiter = createLimiter({ store: redisStore(url, options), rules, instances });
  limiters.push(limiter);
  return limiter;
}

afterEach(async () => {
  for (const limiter of limiters.splice(0)) await limiter.close();
});

async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 300; i++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`not within 3 s: ${what}`);
}

test("with Redis down at boot the program starts, and each policy answers", async () => {
  const limiter = limiterAt(`redis://127.0.0.1:${await freePort()}`);
  const causes: unknown[] = [];
  limiter.on("degraded", (cause) => causes.push(cause));
  expect(await limiter.ready()).toBe(false);
  expect(await limiter.check({ user: "u", policy: "allow" })).toMatchObject({ allowed: true, degraded: "allow" });
  expect(await limiter.check({ user: "u", policy: "deny" })).toMatchObject({
    allowed: false,
    degraded: "deny",
    reason: "store-unavailable",
    violated: ["shut"],
  });
  expect(await limiter.check({ user: "u", policy: "shadow" })).toMatchObject({ allowed: true });
  const local = [];
  for (let i = 0; i < 3; i++) local.push(await limiter.check({ user: "u", policy: "local" }));
  expect(local.map(({ allowed }) => allowed)).toEqual([true, true, false]);
  expect(local[2]).toMatchObject({ degraded: "local", reason: "limit" });
  expect(causes).toHaveLength(1);
  expect(String(causes[0])).toContain("ECONNREFUSED");
});

test("under `local` an instance admits its share of the limit", async () => {
  const limiter = limiterAt(`redis://127.0.0.1:${await freePort()}`, {}, 2);
  expect((await limiter.check({ user: "u", policy: "local" })).allowed).toBe(true);
  expect((await limiter.check({ user: "u", policy: "local" })).allowed).toBe(false);
});

test("a refund under `local` gives back what the instance's share was charged", async () => {
  const limiter = limiterAt(`redis://127.0.0.1:${await freePort()}`, {}, 2);
  limiter.setRules([
    { id: "r", key: ["user"], algorithm: "token-bucket", limit: 10, window: "365d", onStoreFailure: "local" },
  ]);
  await limiter.check({ user: "u" }, { cost: 3 });
  const second = await limiter.check({ user: "u" }, { cost: 2 });
  expect(second.remaining).toBe(0);
  expect(await limiter.refund(second)).toBe(true);
  expect((await limiter.check({ user: "u" }, { cost: 0 })).remaining).toBe(2);
});

test("one look at a Redis that is back tells that it is ready", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 500, breakerIntervalMs: 1 });
  await eventually("the store answers", () => limiter.ready());
  redis.pause();
  for (let i = 0; i < 3; i++) await limiter.check({ user: "u", policy: "allow" });
  redis.resume();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await limiter.ready()).toBe(true);
  await limiter.close();
  await redis.stop();
});

test("a rule that denies keeps its siblings from being charged locally", async () => {
  const limiter = limiterAt(`redis://127.0.0.1:${await freePort()}`);
  const both: Rule[] = [
    { id: "near", ...base, onStoreFailure: "local" },
    { id: "shut", ...base, match: { strict: "yes" }, onStoreFailure: "deny" },
  ];
  limiter.setRules(both);
  for (let i = 0; i < 5; i++) expect((await limiter.check({ user: "u", strict: "yes" })).violated).toEqual(["shut"]);
  expect(await limiter.check({ user: "u" })).toMatchObject({ allowed: true, remaining: 1 });
});

test("a Redis that hangs costs a few deadlines, then the breaker spares the wait, and recovery is noticed", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 50, breakerIntervalMs: 1_000 });
  let recoveries = 0;
  limiter.on("recovered", () => recoveries++);
  await eventually("the store answers", () => limiter.ready());
  // On a busy machine, Redis itself may take longer than the deadline now and then.
  await eventually(
    "checks are exact",
    async () => (await limiter.check({ user: "u", policy: "allow" })).degraded === undefined,
  );

  redis.pause();
  for (let i = 0; i < 3; i++) expect((await limiter.check({ user: "u", policy: "allow" })).degraded).toBe("allow");
  // Open now: most of a hundred checks in a row wait for no deadline. (One an interval tries Redis.)
  const before = limiter.storeStats()!.spared;
  for (let i = 0; i < 100; i++) expect((await limiter.check({ user: "u", policy: "allow" })).degraded).toBe("allow");
  expect(limiter.storeStats()!.spared - before).toBeGreaterThan(50);

  redis.resume();
  await eventually(
    "checks are exact again",
    async () => (await limiter.check({ user: "v", policy: "allow" })).degraded === undefined,
  );
  // Not at the first answer: it may be one of few.
  expect(recoveries).toBe(0);
  await expect.poll(() => recoveries, { timeout: 10_000 }).toBe(1);
  await limiter.close();
  await redis.stop();
});

test("while the breaker is open, Redis sees at most one probe an interval", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 20, breakerFailures: 2, breakerIntervalMs: 300 });
  await eventually("the store answers", () => limiter.ready());
  await redis.cli("CONFIG", "RESETSTAT");
  redis.pause();
  const startMs = performance.now();
  let checks = 0;
  for (; performance.now() - startMs < 1_000; checks++) {
    expect((await limiter.check({ user: "u", policy: "allow" })).degraded).toBe("allow");
  }
  const intervals = Math.ceil((performance.now() - startMs) / 300);
  redis.resume();
  // What was sent waits in the server's buffer, and is run before this is answered.
  const calls = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.cli("INFO", "commandstats"))?.[1]);
  console.log(`outage: ${checks} checks in a second of outage reached Redis ${calls} times`);
  // Two that opened the breaker, then one an interval.
  expect(calls).toBeGreaterThanOrEqual(2);
  expect(calls).toBeLessThanOrEqual(2 + intervals);
  expect(checks).toBeGreaterThan(2 * calls);
  await limiter.close();
  await redis.stop();
});

test("the first check waits for the connection instead of being answered by policy", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 2_000 });
  expect((await limiter.check({ user: "first", policy: "deny" })).degraded).toBeUndefined();
  await limiter.close();
  await redis.stop();
});

test("errors that Redis itself reports are answered by policy, with the cause told", async () => {
  const redis = await startRedis({ args: ["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"] });
  const limiter = limiterAt(redis.url, { deadlineMs: 2_000 });
  const causes: string[] = [];
  limiter.on("degraded", (cause) => causes.push(String(cause)));
  await eventually("the store answers", () => limiter.ready());
  expect(await limiter.check({ user: "u", policy: "deny" })).toMatchObject({ allowed: false, degraded: "deny" });
  expect(causes.join()).toContain("OOM");
  await limiter.close();
  await redis.stop();
});

test("after close a check is an error of the caller", async () => {
  const limiter = createLimiter({ rules });
  await limiter.close();
  await expect(limiter.check({ user: "u", policy: "allow" })).rejects.toMatchObject({ code: "closed" });
});

test("the store tells its calls, their errors and times, how many requests shared one, and its breaker", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 200, breakerFailures: 2, breakerIntervalMs: 60_000 });
  const sumOf = (counts: readonly number[] = []): number => counts.reduce((sum, count) => sum + count, 0);
  try {
    expect(await limiter.ready()).toBe(true);
    const before = limiter.storeStats()!;
    await Promise.all(Array.from({ length: 10 }, (_, i) => limiter.check({ user: `u${i}`, policy: "allow" })));
    const after = limiter.storeStats()!;
    expect(after).toMatchObject({ calls: before.calls + 1, errors: 0, spared: 0, breaker: "closed" });
    expect(after.batchSizes).toMatchObject({ sum: 10 });
    expect(sumOf(after.batchSizes.counts)).toBe(1);
    expect(sumOf(after.latencyMs.counts)).toBe(after.calls);
    redis.pause();
    for (let i = 0; i < 3; i++) await limiter.check({ user: `v${i}`, policy: "allow" });
    const down = limiter.storeStats()!;
    expect(down).toMatchObject({ calls: after.calls + 2, errors: 2, spared: 1, breaker: "open" });
    expect(down.latencyMs.sum - after.latencyMs.sum).toBeGreaterThan(300);
  } finally {
    redis.resume();
    await redis.stop();
  }
});

test("a process that was held up waits for the reply that is on its way", async () => {
  const redis = await startRedis();
  // The proxy lives in this process: what it holds up, the reply waits for.
  const proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
  const limiter = limiterAt(proxy.url, { deadlineMs: 50 });
  await eventually("the store answers", () => limiter.ready());
  for (let i = 0; i < 5; i++) {
    const decision = limiter.check({ user: `u${i}`, policy: "deny" });
    await Promise.resolve();
    blockEventLoop(200);
    expect((await decision).degraded).toBeUndefined();
  }
  await limiter.close();
  await proxy.stop();
  await redis.stop();
});

test("a healthy Redis is ready, though the process was held up or the connection took longer than the deadline", async () => {
  const redis = await startRedis();
  const proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
  const busy = limiterAt(proxy.url, { deadlineMs: 50 });
  const looked = busy.ready();
  await Promise.resolve();
  blockEventLoop(200);
  expect(await looked).toBe(true);
  // Each round trip is in time, and the handshake is several.
  proxy.latencyMs = 60;
  expect(await limiterAt(proxy.url, { deadlineMs: 100 }).ready()).toBe(true);
  for (const limiter of limiters.splice(0)) await limiter.close();
  await proxy.stop();
  await redis.stop();
});

test("a process that was held up answers by policy all the same where Redis is silent", async () => {
  const redis = await startRedis();
  const limiter = limiterAt(redis.url, { deadlineMs: 50 });
  await eventually("the store answers", () => limiter.ready());
  redis.pause();
  const decision = limiter.check({ user: "u", policy: "deny" });
  await Promise.resolve();
  blockEventLoop(200);
  expect((await decision).degraded).toBe("deny");
  redis.resume();
  await limiter.close();
  await redis.stop();
});

test("a slow connection is worth waiting for the first time, not again", async () => {
  const redis = await startRedis();
  const proxy = await startTcpFaultProxy({ upstreamPort: redis.port, latencyMs: 60 });
  const limiter = limiterAt(proxy.url, { deadlineMs: 100 });
  // Two round trips: the handshake takes longer than the deadline leaves.
  expect((await limiter.check({ user: "u", policy: "deny" })).degraded).toBeUndefined();
  proxy.latencyMs = 400;
  proxy.cut();
  expect((await limiter.check({ user: "u", policy: "deny" })).degraded).toBe("deny");
  await limiter.close();
  await proxy.stop();
  await redis.stop();
});

test("a Redis that answers now early, now late is one outage, told once", async () => {
  const redis = await startRedis();
  const proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
  const limiter = limiterAt(proxy.url, { deadlineMs: 40, breakerIntervalMs: 50 });
  const events: string[] = [];
  for (const event of ["degraded", "recovered"] as const) limiter.on(event, () => events.push(event));
  await eventually("the store answers", () => limiter.ready());
  let byPolicy = 0;
  let decided = 0;
  // On a loaded machine three in a row may be late, and the breaker then answers without asking.
  for (let i = 0; byPolicy <= 15 || decided <= 15; i++) {
    proxy.latencyMs = i % 3 === 0 ? 80 : 0;
    const { degraded } = await limiter.check({ user: `u${i}`, policy: "allow" });
    if (degraded === undefined) decided++;
    else byPolicy++;
    if (degraded !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  proxy.latencyMs = 0;
  // Told at once where the cause is known, else after a moment.
  await expect.poll(() => events, { timeout: 10_000 }).toEqual(["degraded"]);
  await eventually(
    "it answers",
    async () => (await limiter.check({ user: "v", policy: "allow" })).degraded === undefined,
  );
  await expect.poll(() => events, { timeout: 10_000 }).toEqual(["degraded", "recovered"]);
  await limiter.close();
  await proxy.stop();
  await redis.stop();
});
