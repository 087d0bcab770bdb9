import fc from "fast-check";
import { expect, test } from "vitest";
import { FrequentItems, type Item } from "./frequent-items.js";

function count(stream: readonly string[], keep: number): FrequentItems<Item> {
  const items = new FrequentItems(keep);
  for (const key of stream) {
    const known = items.find(key);
    if (known === undefined) items.insert(key, { count: 1 });
    else known.count++;
  }
  return items;
}

function trueCounts(stream: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const key of stream) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

test("counts never exceed the truth, are low by at most the offset, and the offset is at most n / (keep + 1)", () => {
  const stream = fc.array(
    fc.integer({ min: 0, max: 40 }).map((n) => `k${Math.floor((n * n) / 40)}`),
    { maxLength: 600 },
  );
  fc.assert(
    fc.property(stream, fc.integer({ min: 1, max: 12 }), (keys, keep) => {
      const items = count(keys, keep);
      const truth = trueCounts(keys);
      expect(items.offset).toBeLessThanOrEqual(keys.length / (keep + 1));
      expect(items.size).toBeLessThan(2 * keep);
      for (const [key, seen] of truth) {
        const told = items.find(key)?.count ?? 0;
        expect(told).toBeLessThanOrEqual(seen);
        expect(told + items.offset).toBeGreaterThanOrEqual(seen);
      }
    }),
  );
});

test("top lists the largest first, with a bound for all other items", () => {
  const stream = fc.array(fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), { maxLength: 300 });
  fc.assert(
    fc.property(stream, fc.integer({ min: 0, max: 6 }), (keys, most) => {
      const { items, absent } = count(keys, 3).top(most);
      const counts = items.map(([, item]) => item.count);
      expect(counts).toEqual([...counts].sort((a, b) => b - a));
      expect(items.length).toBeLessThanOrEqual(most);
      const listed = new Set(items.map(([key]) => key));
      for (const [key, seen] of trueCounts(keys)) if (!listed.has(key)) expect(seen).toBeLessThanOrEqual(absent);
    }),
  );
});

test("counts are exact if all items fit", () => {
  const { items, offset, absent } = count(["a", "b", "a", "c", "a", "b"], 10).top(10);
  expect(items.map(([key, item]) => [key, item.count])).toEqual([
    ["a", 3],
    ["b", 2],
    ["c", 1],
  ]);
  expect([offset, absent]).toEqual([0, 0]);
});
