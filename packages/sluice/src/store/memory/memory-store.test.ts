import { expect, test, vi } from "vitest";
import type { Check } from "../../check.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { virtualClock } from "../../testing.js";
import { MemoryLimit, type MemoryUse } from "./memory-limit.js";
import { MemoryStore } from "./memory-store.js";

const book = compileRuleBook([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "1s" }], 1);
const request = (user: string, id?: string) => ({
  checks: book.checks({ user }, undefined) as Check[],
  charge: true,
  entryId: "e",
  id,
  rulesVersion: 1,
  fingerprint: "",
});

test("one-off keys do not grow the store beyond what one window holds", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock });
  let most = 0;
  for (let i = 0; i < 400_000; i++) {
    // A thousand keys per step of 10 ms: about 100 000 are alive at any time.
    if (i % 1_000 === 0) clock.advance(10);
    store.decide(request(`one-off-${i}`));
    most = Math.max(most, store.size);
  }
  store.close();
  console.log(`memory store: 400 000 one-off keys, at most ${most} held (100 000 alive at a time)`);
  expect(most).toBeLessThan(220_000);
});

/** The smallest bound that a store accepts: about five thousand counters. */
const maxBytes = 2 ** 20;
const hour = { algorithm: "fixed-window", limit: 1, window: "1h" } as const;
const asking = (rules: Parameters<typeof compileRuleBook>[0], attributes: Record<string, string>) => ({
  ...request("x"),
  checks: compileRuleBook(rules, 1).checks(attributes, undefined),
});

test("at its bound in bytes the store accepts new keys, and others are evicted", () => {
  const store = new MemoryStore({ clock: virtualClock(), maxBytes });
  for (let i = 0; i < 20_000; i++) {
    store.decide(request(`key-${i}`));
    expect(store.memory().bytes).toBeLessThanOrEqual(maxBytes);
  }
  expect(store.size).toBeLessThan(5_000);
  expect(store.memory().evicted).toEqual({ idle: 20_000 - store.size, usedUp: 0, ids: 0 });
  expect(store.decide(request("key-19999")).verdicts[0]).toMatchObject({ allowed: true, remaining: 0 });
  store.close();
});

test("a used-up counter survives any flood of keys that have something left", () => {
  const store = new MemoryStore({ clock: virtualClock(), maxBytes });
  const usedUp = asking([{ id: "once", key: ["user"], ...hour }], { user: "mallory" });
  expect(store.decide(usedUp).verdicts[0]!.allowed).toBe(true);
  for (let i = 0; i < 50_000; i++) store.decide(request(`flood-${i}`));
  expect(store.decide(usedUp).verdicts[0]!.allowed).toBe(false);
  expect(store.memory().evicted.usedUp).toBe(0);
  store.close();
});

test("if every counter is used up, the one nearest to its end is evicted, so that those with a long wait stay", () => {
  const store = new MemoryStore({ clock: virtualClock(), maxBytes });
  const long = asking([{ id: "once", key: ["user"], ...hour, window: "1d" }], { user: "mallory" });
  store.decide(long);
  const flood = compileRuleBook([{ id: "brief", key: ["user"], ...hour, window: "1m" }], 1);
  for (let i = 0; i < 20_000; i++)
    store.decide({ ...request("x"), checks: flood.checks({ user: `flood-${i}` }, undefined) });
  expect(store.decide(long).verdicts[0]!.allowed).toBe(false);
  const { evicted, bytes } = store.memory();
  expect(evicted.idle).toBe(0);
  expect(evicted.usedUp).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThanOrEqual(maxBytes);
  store.close();
});

test("a counter that has something left again is idle again", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock, maxBytes });
  const bucket = asking([{ id: "b", key: ["user"], algorithm: "token-bucket", limit: 10, window: "10s" }], {
    user: "a",
  });
  for (let i = 0; i < 11; i++) store.decide(bucket);
  clock.advance("5s");
  expect(store.decide(bucket).verdicts[0]).toMatchObject({ allowed: true, remaining: 4 });
  const flood = compileRuleBook([{ id: "long", key: ["user"], ...hour, limit: 2 }], 1);
  for (let i = 0; i < 20_000; i++)
    store.decide({ ...request("x"), checks: flood.checks({ user: `flood-${i}` }, undefined) });
  expect(store.decide(bucket).verdicts[0]).toMatchObject({ remaining: 9 });
  expect(store.memory().evicted.usedUp).toBe(0);
  store.close();
});

test("keys and rings count with their real length", () => {
  const store = new MemoryStore({ clock: virtualClock(), maxBytes });
  const bytesOf = (user: string): number => {
    const before = store.memory().bytes;
    store.decide(request(user));
    return store.memory().bytes - before;
  };
  const short = bytesOf("x");
  expect(bytesOf("x".repeat(101)) - short).toBe(100);
  expect(bytesOf("漢".repeat(101)) - short).toBeGreaterThanOrEqual(2 * 100);
  const rolling = asking([{ id: "roll", key: ["user"], algorithm: "rolling-window", limit: 50_000, window: "1m" }], {
    user: "ann",
  });
  for (let i = 0; i < 50_000; i++) store.decide(rolling);
  expect(store.memory().bytes).toBeGreaterThan(400_000);
  expect(store.memory().bytes).toBeLessThanOrEqual(maxBytes);
  store.close();
});

test("released leases do not count forever", () => {
  const store = new MemoryStore({ clock: virtualClock(), maxBytes });
  const leased = asking([{ id: "c", key: ["user"], algorithm: "concurrency", limit: 5 }], { user: "ann" });
  for (let i = 0; i < 1_000; i++) {
    store.decide({ ...leased, entryId: `e${i}` });
    store.release({ places: [{ key: leased.checks[0]!.key, entryId: `e${i}`, places: 1, ttlMs: 30_000 }] });
  }
  expect(store.memory().bytes).toBeLessThan(1_000);
  store.reset([leased.checks[0]!.key]);
  expect(store.memory()).toMatchObject({ bytes: 0, counters: 0 });
  store.close();
});

test("request ids are bounded in bytes, counting the checks that they remember and their length", () => {
  const clock = virtualClock();
  const store = new MemoryStore({ clock, maxBytes });
  const many = compileRuleBook(
    Array.from({ length: 20 }, (_, i) => ({ id: `r${i}`, key: ["user"], ...hour, limit: 1_000_000 })),
    1,
  );
  for (let i = 0; i < 2_000; i++) {
    clock.advance(1);
    store.decide({ ...request("x", `id-${i}`), checks: many.checks({ user: "ann" }, undefined) });
  }
  const { ids, evicted } = store.memory();
  expect(ids).toBeLessThan(60);
  expect(evicted.ids).toBe(2_000 - ids);
  expect(store.recall("id-1999")).toBeDefined();
  expect(store.recall("id-0")).toBeUndefined();
  clock.advance("1m");
  expect(store.recall("id-1999")).toBeUndefined();
  store.close();
});

test("reaching the bound is reported once per episode", () => {
  const told: MemoryUse[] = [];
  const limit = new MemoryLimit(maxBytes, (use) => told.push(use));
  const use = (idle: number): MemoryUse => ({
    ...{ bytes: maxBytes, maxBytes, counters: 9, ids: 0 },
    evicted: { idle, usedUp: 0, ids: 0 },
  });
  const looks = [0, 0, 5, 9, 9, 12];
  for (const idle of looks) limit.watch(use(idle));
  expect(told.map(({ evicted }) => evicted.idle)).toEqual([5]);
  for (let i = 0; i < 60; i++) limit.watch(use(12));
  limit.watch(use(13));
  limit.watch(use(14));
  expect(told.map(({ evicted }) => evicted.idle)).toEqual([5, 13]);
});

test("a store at its bound warns within seconds", async () => {
  const told = new Promise<MemoryUse>((resolve) => {
    const store = new MemoryStore({ maxBytes, onMemoryLimit: resolve });
    for (let i = 0; i < 10_000; i++) store.decide(request(`key-${i}`));
  });
  expect((await told).evicted.idle).toBeGreaterThan(0);
});

test.each([0, 1.5, 1_000, Number.NaN])("a bound of %s bytes is refused", (wrong) => {
  expect(() => new MemoryStore({ maxBytes: wrong })).toThrow("maxBytes: expected a whole number of at least 1048576");
});

test("without traffic, one timer for the whole store sweeps what has ended", async () => {
  const store = new MemoryStore();
  const brief = compileRuleBook([{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 2, window: "20ms" }], 1);
  for (let i = 0; i < 500; i++) store.decide({ ...request("x"), checks: brief.checks({ user: `u${i}` }, undefined) });
  expect(store.size).toBeGreaterThan(0);
  await expect.poll(() => store.size, { timeout: 5_000 }).toBe(0);
  store.close();
});

test("a check looks up its counter once, or twice if it is used up, whatever happened to it before", () => {
  const store = new MemoryStore({ clock: virtualClock() });
  const once = asking([{ id: "once", key: ["user"], ...hour }], { user: "a" });
  const often = asking([{ id: "often", key: ["user"], ...hour, limit: 1_000 }], { user: "b" });
  const searchesOf = (asked: typeof once): number => {
    const search = vi.spyOn(Map.prototype, "get");
    store.decide(asked);
    const { length } = search.mock.calls;
    search.mockRestore();
    return length;
  };
  for (const asked of [once, often]) store.decide(asked);
  expect([searchesOf(often), searchesOf(once), searchesOf(once)]).toEqual([1, 2, 2]);
  store.close();
});
