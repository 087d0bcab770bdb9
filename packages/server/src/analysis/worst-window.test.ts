import { expect, test } from "vitest";
import { WorstWindow } from "./worst-window.js";

test("an entry expires exactly one window after it arrived", () => {
  const window = new WorstWindow(1_000);
  window.add("a", 1, 0);
  window.add("a", 1, 999);
  window.add("a", 1, 1_000);
  expect(window.worst()).toEqual({ key: "a", max: 2, atMs: 999 });
});

test("equals a brute-force count, for random arrivals, keys and costs", () => {
  let seed = 99;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (seed >> 8) % below;
  };
  const windowMs = 500;
  const all: { key: string; cost: number; atMs: number }[] = [];
  let atMs = 0;
  for (let i = 0; i < 6_000; i++) {
    // Some keys occur in every window, some once in many.
    atMs += random(40) === 0 ? random(1_400) : random(3);
    all.push({ key: random(3) === 0 ? `rare${random(400)}` : `k${random(5)}`, cost: 1 + random(3), atMs });
  }
  const found = new WorstWindow(windowMs);
  let expected: { key: string; max: number; atMs: number } | undefined;
  let steps = 0;
  all.forEach((end, i) => {
    let sum = 0;
    for (let j = i; j >= 0 && all[j]!.atMs > end.atMs - windowMs; j--) if (all[j]!.key === end.key) sum += all[j]!.cost;
    if (sum > (expected?.max ?? 0)) {
      expected = { key: end.key, max: sum, atMs: end.atMs };
      steps++;
    }
    found.add(end.key, end.cost, end.atMs);
    expect(found.worst()).toEqual(expected);
  });
  expect(steps).toBeGreaterThan(30);
});

test("keys outside the window take no memory", () => {
  const window = new WorstWindow(1_000);
  window.add("worst", 7, 0);
  for (let i = 0; i < 50_000; i++) window.add(`client-${i}`, 1, 10 * i);
  // The keys of the last window, and of the one before.
  expect(window.keyCount).toBeLessThanOrEqual(200);
  expect(window.worst()).toEqual({ key: "worst", max: 7, atMs: 0 });
});

test("a busy key keeps only the entries of its window", () => {
  const window = new WorstWindow(1_000);
  for (let i = 0; i < 100_000; i++) window.add("busy", 1, i);
  expect(window.entryCount).toBeLessThanOrEqual(2 * 1_000 + 64);
  expect(window.worst()).toEqual({ key: "busy", max: 1_000, atMs: 999 });
});
