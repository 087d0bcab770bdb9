/** What a Redis loses, and how a check goes on all the same. */
import { createLimiter, type Limiter, type Rule } from "sluice";
import { redisStore } from "sluice/redis";
import { afterAll, beforeAll, beforeEach, expect, test as vitest } from "vitest";
import { FREED_KEY, KEY_PREFIX } from "../../packages/sluice/src/keys.js";
import { whyMissing } from "../../scripts/system-components.mjs";
import { type RedisServer, startRedis } from "../harness/redis-server.js";
import { startTcpFaultProxy, type TcpFaultProxy } from "../harness/tcp-fault-proxy.js";

const test = vitest.skipIf(whyMissing("redis"));

const rule: Rule = {
  id: "r",
  key: ["user"],
  algorithm: "rolling-window",
  storage: "sorted-set",
  limit: 3,
  window: "1h",
  onStoreFailure: "deny",
};
const user = { user: "ann" };

let redis: RedisServer;
let proxy: TcpFaultProxy;
let limiter: Limiter;

beforeAll(async () => {
  if (whyMissing("redis")) return;
  redis = await startRedis();
  proxy = await startTcpFaultProxy({ upstreamPort: redis.port });
});

beforeEach(async () => {
  if (whyMissing("redis")) return;
  await redis.cli("FLUSHALL");
  await limiter?.close();
  limiter = createLimiter({
    store: redisStore(proxy.url, { deadlineMs: 2_000, breakerIntervalMs: 50 }),
    rules: [rule],
    instances: 1,
  });
  expect(await limiter.ready()).toBe(true);
});

afterAll(async () => {
  await limiter?.close();
  await proxy?.stop();
  await redis?.stop();
});

/** Waits until the limiter has found its Redis again. */
async function recovered(): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await limiter.ready()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("the store did not come back within 4 s");
}

test("a check still answers after SCRIPT FLUSH, with one resend", async () => {
  expect((await limiter.check(user)).remaining).toBe(2);
  await redis.cli("SCRIPT", "FLUSH");
  const decision = await limiter.check(user);
  expect(decision).toMatchObject({ allowed: true, remaining: 1 });
  expect(decision.degraded).toBeUndefined();
  await redis.cli("CONFIG", "RESETSTAT");
  await limiter.check(user);
  expect(await redis.cli("INFO", "commandstats")).toMatch(/cmdstat_evalsha:calls=1,/);
});

test("after FLUSHALL counting starts anew, at the latest when a remembered refusal is asked for again", async () => {
  for (let i = 0; i < 3; i++) await limiter.check(user);
  expect((await limiter.check(user)).allowed).toBe(false);
  await redis.cli("FLUSHALL");
  expect(await limiter.check({ user: "bob" })).toMatchObject({ allowed: true, remaining: 2 });
  await expect.poll(async () => (await limiter.check(user)).remaining, { timeout: 3_000 }).toBe(2);
});

test("after a restart a check answers again by itself", async () => {
  await limiter.check(user);
  await redis.restart();
  await recovered();
  const decision = await limiter.check(user);
  expect(decision).toMatchObject({ allowed: true });
  expect(decision.degraded).toBeUndefined();
});

test("a connection cut in mid-call is answered by the rule's failure policy, and the next check is exact again", async () => {
  const dropped = proxy.dropNextReply("EVALSHA");
  const decision = await limiter.check(user);
  await dropped;
  expect(decision).toMatchObject({ allowed: false, reason: "store-unavailable", degraded: "deny" });
  await recovered();
  // The script had run: the charge stands, though its answer was lost.
  expect(await limiter.check(user)).toMatchObject({ allowed: true, remaining: 1 });
});

test("a lost reply followed by a retry with the same id is charged once", async () => {
  const dropped = proxy.dropNextReply("EVALSHA");
  expect((await limiter.check(user, { id: "order-7" })).degraded).toBe("deny");
  await dropped;
  await recovered();
  expect(await limiter.check(user, { id: "order-7" })).toMatchObject({ allowed: true, remaining: 2 });
  expect(await limiter.check(user, { id: "order-7" })).toMatchObject({ allowed: true, remaining: 2 });
  expect(await limiter.check(user)).toMatchObject({ allowed: true, remaining: 1 });
});

test("a refund that did not reach the store may be tried again", async () => {
  const decision = await limiter.check(user, { cost: 3 });
  await proxy.refuse(true);
  proxy.cut();
  await expect.poll(() => limiter.ready(), { timeout: 3_000 }).toBe(false);
  await expect(limiter.refund(decision)).rejects.toMatchObject({ code: "store-unavailable", mayHaveRun: false });
  await proxy.refuse(false);
  await recovered();
  expect(await limiter.refund(decision)).toBe(true);
  expect(await limiter.refund(decision)).toBe(false);
  expect((await limiter.peek(user, { cost: 0 })).remaining).toBe(3);
});

test("a refund whose answer was lost is not given twice; with an id the store knows", async () => {
  const [bare, known] = [await limiter.check(user), await limiter.check(user, { id: "known" })];
  for (const decision of [bare, known]) {
    const dropped = proxy.dropNextReply("EVALSHA");
    await expect(limiter.refund(decision)).rejects.toMatchObject({ code: "store-unavailable", mayHaveRun: true });
    await dropped;
    await recovered();
    expect(await limiter.refund(decision)).toBe(false);
  }
  expect((await limiter.peek(user, { cost: 0 })).remaining).toBe(3);
});

test("a key that something else wrote fails its own request, not the others of the batch", async () => {
  await redis.cli("SET", "sluice:1:{user=mallory}:r:z", "not a sorted set");
  const [mine, theirs] = await Promise.all([limiter.check(user), limiter.check({ user: "mallory" })]);
  expect(mine).toMatchObject({ allowed: true, remaining: 2 });
  expect(theirs).toMatchObject({ allowed: false, reason: "store-unavailable" });
});

test("one round trip decides a request, whatever the number of rules", async () => {
  const rules: Rule[] = [
    { ...rule, id: "a" },
    { ...rule, id: "b", key: [], storage: "packed" } as Rule,
    { id: "c", key: ["user"], algorithm: "token-bucket", limit: 9, window: "1h" },
    { id: "d", key: ["user"], algorithm: "concurrency", limit: 9 },
    { id: "e", key: ["user"], algorithm: "sliding-counter", limit: 9, window: "1h" },
  ];
  limiter.setRules(rules);
  await redis.cli("CONFIG", "RESETSTAT");
  const decision = await limiter.check(user);
  expect(decision.checks).toHaveLength(5);
  const stats = await redis.cli("INFO", "commandstats");
  expect(stats).toMatch(/cmdstat_evalsha:calls=1,/);
  expect(stats).not.toMatch(/cmdstat_eval:/);
});

test.each([
  { checks: 31, calls: 1 },
  { checks: 128, calls: 3 },
])("checks of one turn of the event loop share script calls: $checks take $calls", async ({ checks, calls }) => {
  await redis.cli("CONFIG", "RESETSTAT");
  const decisions = await Promise.all(Array.from({ length: checks }, () => limiter.check(user)));
  expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(3);
  expect(await redis.cli("INFO", "commandstats")).toContain(`cmdstat_evalsha:calls=${calls},`);
});

test("every key expires by itself, in milliseconds, no later than its state can matter", async () => {
  const window = { window: "90500ms" };
  const rules: Rule[] = [
    { id: "bucket", key: ["user"], algorithm: "token-bucket", limit: 2, ...window },
    { id: "gcra", key: ["user"], algorithm: "gcra", limit: 2, ...window },
    { id: "fixed", key: ["user"], algorithm: "fixed-window", limit: 2, ...window, candidate: { limit: 1 } },
    { id: "sliding", key: ["user"], algorithm: "sliding-counter", limit: 2, ...window },
    { id: "sorted", key: ["user"], algorithm: "rolling-window", limit: 2, ...window, storage: "sorted-set" },
    { id: "packed", key: ["user"], algorithm: "rolling-window", limit: 2, ...window, storage: "packed" },
    { id: "places", key: ["user"], algorithm: "concurrency", limit: 2, ttl: "90500ms" },
  ];
  limiter.setRules(rules);
  await limiter.check(user, { id: "remembered" });
  const decision = await limiter.check(user);
  await limiter.refund(decision);
  await limiter.check(user);
  const stored = async () => (await redis.cli("KEYS", "*")).trim().split("\n");
  // The note of what was freed is written a moment after the refund.
  await expect.poll(stored, { timeout: 30_000 }).toContain(KEY_PREFIX + FREED_KEY);
  const keys = await stored();
  // A counter for each rule and for the candidate, the record of the id, the note.
  expect(keys).toHaveLength(rules.length + 3);
  for (const key of keys) {
    const left = Number(await redis.cli("PTTL", key));
    expect(left, key).toBeGreaterThan(0);
    expect(left, key).toBeLessThanOrEqual(key.includes(":sliding:") ? 181_000 : 90_500);
  }
});

test("a request id is remembered for a minute", async () => {
  await limiter.check(user, { id: "minute" });
  const [record] = (await redis.cli("KEYS", "*=minute")).trim().split("\n");
  const left = Number(await redis.cli("PTTL", record!));
  expect(left).toBeGreaterThan(50_000);
  expect(left).toBeLessThanOrEqual(60_000);
});

test("a refund is seen at once by the limiter that gave it, though it remembers the refusal", async () => {
  const whole = await limiter.check(user, { cost: 3 });
  expect((await limiter.check(user)).allowed).toBe(false);
  expect((await limiter.check(user)).allowed).toBe(false);
  expect(await limiter.refund(whole)).toBe(true);
  expect(await limiter.check(user)).toMatchObject({ allowed: true, remaining: 2 });
});

test("an attacker's traffic costs Redis nothing until the refusal ends", async () => {
  await limiter.check(user, { cost: 3 });
  expect((await limiter.check(user)).allowed).toBe(false);
  await redis.cli("CONFIG", "RESETSTAT");
  let refused = 0;
  for (let i = 0; i < 5_000; i++) if (!(await limiter.check(user)).allowed) refused++;
  expect(refused).toBe(5_000);
  const calls = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.cli("INFO", "commandstats"))?.[1] ?? 0);
  console.log(`remembered refusals: 5000 refused, ${calls} calls to Redis`);
  // One a second at most, and the loop may be slow.
  expect(calls).toBeLessThan(30);
  await limiter.reset("r", user);
  expect(await limiter.check(user)).toMatchObject({ allowed: true, remaining: 2 });
});

test("a remembered refusal ends when its window does", async () => {
  limiter.setRules([
    { id: "brief", key: ["user"], algorithm: "rolling-window", limit: 1, window: "300ms", onStoreFailure: "deny" },
  ]);
  expect((await limiter.check(user)).allowed).toBe(true);
  const { retryAfterMs } = await limiter.check(user);
  const startMs = performance.now();
  while (!(await limiter.check(user)).allowed) await new Promise((resolve) => setTimeout(resolve, 1));
  const waitedMs = performance.now() - startMs;
  expect(waitedMs).toBeGreaterThan(retryAfterMs - 20);
  console.log(`remembered refusals: told ${retryAfterMs} ms, passed after ${waitedMs.toFixed(0)} ms`);
});

test("an outage ends though every request after it is a refusal that is remembered", async () => {
  await using own = await startRedis();
  const single: Rule = {
    id: "single",
    key: ["user"],
    algorithm: "fixed-window",
    limit: 1,
    window: "365d",
    onStoreFailure: "deny",
  };
  const store = redisStore(own.url, { deadlineMs: 1_000, breakerIntervalMs: 50 });
  const refusing = createLimiter({ store, rules: [single], instances: 1 });
  const events: string[] = [];
  refusing.on("degraded", () => events.push("degraded"));
  refusing.on("recovered", () => events.push("recovered"));
  const checkUntil = async (event: string) => {
    while (events.at(-1) !== event) {
      expect((await refusing.check(user)).allowed).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  try {
    expect(await refusing.ready()).toBe(true);
    // Until refusals are remembered, and what was freed is heard of.
    for (let i = 0; i < 100; i++) {
      expect((await refusing.check(user)).allowed).toBe(i === 0);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    own.pause();
    await checkUntil("degraded");
    own.resume();
    await checkUntil("recovered");
    expect(events).toEqual(["degraded", "recovered"]);
  } finally {
    own.resume();
    await refusing.close();
  }
});
