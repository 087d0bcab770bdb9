import { expect, test } from "vitest";
import { EventQueue } from "./event-queue.js";

test("the earliest comes first; at equal times, the first added", () => {
  const queue = new EventQueue<string>();
  for (const [atMs, item] of [
    [5, "c"],
    [1, "a"],
    [5, "d"],
    [3, "b"],
    [1, "a2"],
  ] as const)
    queue.add(atMs, item);
  expect(queue.nextMs).toBe(1);
  const order: string[] = [];
  while (queue.size > 0) order.push(queue.take()!.item);
  expect(order).toEqual(["a", "a2", "b", "c", "d"]);
  expect(queue.nextMs).toBe(Number.POSITIVE_INFINITY);
  expect(queue.take()).toBeUndefined();
});

test("a thousand random times come out sorted", () => {
  const queue = new EventQueue<number>();
  let seed = 7;
  for (let i = 0; i < 1_000; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    queue.add(seed % 97, i);
  }
  const times: number[] = [];
  while (queue.size > 0) times.push(queue.take()!.atMs);
  expect(times).toEqual([...times].sort((a, b) => a - b));
});
