import { expect, test } from "vitest";
import { concurrency } from "../../algorithms/concurrency.js";
import type { State } from "../../algorithms/model.js";
import type { Decision } from "../../limiter/decision.js";
import { createLimiter } from "../../limiter/limiter.js";
import type { Rule } from "../../rules/rule.js";
import { CounterMap } from "./counter-map.js";
import { memoryStore } from "./memory-store.js";

/** A counter with a key of one character takes 201 bytes. */
const state = (endsAtMs = 1_000): State => ({ endsAtMs, bytes: 0, isUsedUp: false, bornMs: 0 });

test("idle counters are evicted before used-up ones, and each is counted", () => {
  const map = new CounterMap(3 * 201);
  const usedUp = state();
  map.set("u", usedUp, 0);
  map.mark("u", usedUp, true, 0);
  for (const key of ["a", "b", "c", "d"]) map.set(key, state(), 0);
  expect(map.get("u")).toBe(usedUp);
  expect([map.count, map.evictedIdle, map.evictedUsedUp]).toEqual([3, 2, 0]);
});

test("a used-up counter that is charged again as it expires is used up again, and is still evicted last", () => {
  let nowMs = 0;
  const rule = (limit: number, window: string): Rule[] => [
    { id: "r", key: ["user"], algorithm: "fixed-window", limit, window },
  ];
  const store = memoryStore({ clock: { now: () => nowMs }, maxBytes: 2 ** 20 });
  const limiter = createLimiter({ store, rules: rule(1, "1s") });
  const allowed = (user: string): boolean => (limiter.checkNow({ user }) as Decision).allowed;
  expect([allowed("a"), allowed("a")]).toEqual([true, false]);
  nowMs = 1_000;
  expect([allowed("a"), allowed("a")]).toEqual([true, false]);
  // Idle counters that end later, and more than there is room for.
  limiter.setRules(rule(1_000, "10s"));
  for (let i = 0; i < 8_000; i++) allowed(`idle-${i}`);
  expect(limiter.memoryUse()!.evicted.idle).toBeGreaterThan(1_000);
  limiter.setRules(rule(1, "1s"));
  expect(allowed("a")).toBe(false);
});

test("if every counter is used up, the one nearest to its end is evicted", () => {
  const map = new CounterMap(2 * 201);
  for (const [key, endsAtMs] of [
    ["a", 900],
    ["b", 500],
    ["c", 700],
  ] as const) {
    const one = state(endsAtMs);
    map.set(key, one, 0);
    map.mark(key, one, true, 0);
  }
  expect(map.get("b")).toBeUndefined();
  expect(map.evictedUsedUp).toBe(1);
});

test("a counter that is marked back is idle again; an evicted one is not marked into the map", () => {
  const map = new CounterMap(10_000);
  const one = state();
  map.set("a", one, 0);
  map.mark("a", one, true, 0);
  map.mark("a", one, false, 0);
  expect([map.get("a"), one.isUsedUp]).toEqual([one, false]);
  map.delete("a");
  map.mark("a", one, true, 0);
  expect(map.get("a")).toBeUndefined();
});

test("a counter that grows is measured again, and others are evicted for it", () => {
  const map = new CounterMap(700);
  const grows = concurrency.fresh();
  grows.endsAtMs = 1_000;
  map.set("g", grows, 0);
  map.set("a", state(), 0);
  map.set("b", state(), 0);
  grows.leases.set("x", { endsAtMs: 1_000, places: 1, ttlMs: 1_000 });
  map.measure("g", grows, 0);
  expect(map.get("g")).toBe(grows);
  expect([map.count, map.bytes]).toEqual([2, 201 + 201 + 150]);
});

test("expired entries are dropped without being counted as evicted", () => {
  const map = new CounterMap(2 * 201);
  map.set("a", state(10), 0);
  map.set("b", state(10), 0);
  map.set("c", state(), 20);
  expect(map.evictedIdle).toBe(0);
  expect(map.get("c")).toBeDefined();
});
