import { expect, test } from "vitest";
import { InOrder } from "./in-order.js";

const times = (items: { atMs: number }[]): number[] => items.map(({ atMs }) => atMs);

test("items that are a little out of order leave in order, equal ones as they came", () => {
  const order = new InOrder<{ atMs: number; name: string }>(3);
  for (const [atMs, name] of [
    [1, "a"],
    [4, "b"],
    [2, "c"],
    [4, "d"],
    [3, "e"],
  ] as const)
    order.add({ atMs, name });
  expect(order.take().map(({ name }) => name)).toEqual(["a", "c"]);
  order.add({ atMs: 4, name: "f" });
  expect(order.takeAll().map(({ name }) => name)).toEqual(["e", "b", "d", "f"]);
  expect(order.late).toBe(0);
});

test("what belongs before what has left already is late, and leaves all the same", () => {
  const order = new InOrder(1);
  for (const atMs of [10, 20, 30]) order.add({ atMs });
  expect(times(order.take())).toEqual([10, 20]);
  order.add({ atMs: 5 });
  expect(times(order.takeAll())).toEqual([5, 30]);
  expect(order.late).toBe(1);
});

test("a log in reverse order costs no more than its sorting", () => {
  const order = new InOrder(100_000);
  for (let atMs = 50_000; atMs > 0; atMs--) order.add({ atMs });
  expect(times(order.takeAll())).toEqual(Array.from({ length: 50_000 }, (_, i) => i + 1));
});
