import { expect, test } from "vitest";
import { ExpiringMap } from "./expiring-map.js";

const ending = (endsAtMs: number, bytes = 1) => ({ endsAtMs, bytes });

test("insertions sweep expired entries as fast as they come", () => {
  const map = new ExpiringMap<{ endsAtMs: number; bytes: number }>();
  for (let i = 0; i < 10_000; i++) map.set(`k${i}`, ending(i + 10), i);
  expect(map.count).toBeLessThan(50);
  expect(map.bytes).toBe(map.count);
});

test("bytes follow insertions, replacements, resizes and deletions", () => {
  const map = new ExpiringMap<{ endsAtMs: number; bytes: number }>();
  map.set("a", ending(100, 10), 0);
  map.set("b", ending(100, 5), 0);
  map.set("a", ending(100, 7), 0);
  expect(map.bytes).toBe(12);
  map.resize(3);
  expect(map.bytes).toBe(15);
  expect([map.delete("b"), map.delete("b")]).toEqual([true, false]);
  expect([map.bytes, map.count]).toEqual([10, 1]);
});

test("an eviction takes an expired entry first, otherwise the one nearest to its end in the sample", () => {
  const map = new ExpiringMap<{ endsAtMs: number; bytes: number }>();
  for (const [i, endsAtMs] of [50, 20, 90].entries()) map.set(`k${i}`, ending(endsAtMs), 0);
  expect(map.evict(0)).toBe(true);
  expect(map.get("k1")).toBeUndefined();
  expect(map.evict(60)).toBe(false);
  expect([map.get("k0"), map.get("k2")]).toMatchObject([undefined, { endsAtMs: 90 }]);
  map.delete("k2");
  expect(map.evict(0)).toBe(false);
});

test("a sweep looks at no more entries than it may", () => {
  const map = new ExpiringMap<{ endsAtMs: number; bytes: number }>();
  for (let i = 0; i < 10; i++) map.set(`k${i}`, ending(100), 0);
  map.sweep(4, 200);
  expect(map.count).toBe(6);
  map.sweep(100, 200);
  expect(map.count).toBe(0);
});

test("departures grow whenever an entry leaves its key, and never otherwise", () => {
  const map = new ExpiringMap<{ endsAtMs: number; bytes: number }>();
  const entry = (endsAtMs: number) => ({ endsAtMs, bytes: 1 });
  const changes = (work: () => void): boolean => {
    const before = map.departures;
    work();
    return map.departures !== before;
  };
  expect(changes(() => map.set("a", entry(10), 0))).toBe(false);
  expect(changes(() => map.set("b", entry(20), 0))).toBe(false);
  expect(changes(() => map.get("a"))).toBe(false);
  expect(changes(() => map.set("a", entry(30), 0))).toBe(true);
  expect(changes(() => map.delete("c"))).toBe(false);
  expect(changes(() => map.delete("a"))).toBe(true);
  expect(changes(() => map.sweep(10, 15))).toBe(false);
  expect(changes(() => map.sweep(10, 25))).toBe(true);
  map.set("d", entry(50), 30);
  expect(changes(() => map.evict(30))).toBe(true);
  map.set("e", entry(50), 30);
  expect(changes(() => map.clear())).toBe(true);
});
