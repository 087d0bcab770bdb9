import { expect, test } from "vitest";
import { InOrder } from "./in-order.js";

const times = (items: { atMs: number }[]): number[] => items.map(({ atMs }) => atMs);

test("items slightly out of order come out sorted, equal ones in input order", () => {
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

test("an item that belongs before one already emitted is late, but still emitted", () => {
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

test("items displaced by any distance come out as in a stable sort", () => {
  let state = 5;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
  for (const spread of [2, 20, 70, 200, 3_000]) {
    const items = Array.from({ length: 3_000 }, (_, i) => ({ atMs: i - random(spread), i }));
    const order = new InOrder<{ atMs: number; i: number }>();
    for (const item of items) order.add(item);
    expect(order.takeAll()).toEqual([...items].sort((one, other) => one.atMs - other.atMs));
  }
});

test("items taken in steps come out as in a stable sort", () => {
  let state = 9;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return (state >> 8) % below;
  };
  // Spread by less than the hold-back, so that none is late; most share their time with others.
  const items = Array.from({ length: 5_000 }, (_, i) => ({ atMs: Math.floor((i - random(90)) / 10), i }));
  const order = new InOrder<{ atMs: number; i: number }>(100);
  const left: { atMs: number; i: number }[] = [];
  for (let from = 0; from < items.length; ) {
    const end = from + random(200);
    for (const item of items.slice(from, end)) order.add(item);
    left.push(...order.take());
    from = end;
  }
  left.push(...order.takeAll());
  expect(left).toEqual([...items].sort((one, other) => one.atMs - other.atMs));
  expect(order.late).toBe(0);
});
