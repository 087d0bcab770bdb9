import { expect, test } from "vitest";
import { RollingMaxima } from "./rolling-maxima.js";

test("an entry expires exactly one window after it arrived", () => {
  const maxima = new RollingMaxima(1_000);
  maxima.add("a", 1, 0);
  maxima.add("a", 1, 999);
  maxima.add("a", 1, 1_000);
  expect(maxima.top(1)).toEqual([{ key: "a", max: 2, atMs: 999 }]);
});

test("equals a brute-force count, for random arrivals, keys and costs", () => {
  let seed = 99;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (seed >> 8) % below;
  };
  const windowMs = 500;
  const maxima = new RollingMaxima(windowMs);
  const all: { key: string; cost: number; atMs: number }[] = [];
  let atMs = 0;
  for (let i = 0; i < 3_000; i++) {
    atMs += random(4) === 0 ? random(700) : random(3);
    const one = { key: `k${random(5)}`, cost: 1 + random(3), atMs };
    all.push(one);
    maxima.add(one.key, one.cost, one.atMs);
  }
  const expected = new Map<string, number>();
  all.forEach((end, i) => {
    let sum = 0;
    for (let j = i; j >= 0 && all[j]!.atMs > end.atMs - windowMs; j--) if (all[j]!.key === end.key) sum += all[j]!.cost;
    expected.set(end.key, Math.max(expected.get(end.key) ?? 0, sum));
  });
  const found = Object.fromEntries(maxima.top(10).map(({ key, max }) => [key, max]));
  expect(found).toEqual(Object.fromEntries(expected));
  expect([...maxima.maxima()]).toEqual([...expected.values()].sort((a, b) => a - b));
  expect(maxima.keyCount).toBe(expected.size);
});
