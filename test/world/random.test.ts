import { expect, test } from "vitest";
import { EventQueue } from "./event-queue.js";
import { mixSeed, Random } from "./random.js";

test("events come in the order of their times, those of one instant in the order in which they were added", () => {
  const random = new Random(5);
  const queue = new EventQueue<{ atMs: number; order: number }>();
  const events = Array.from({ length: 500 }, (_, order) => ({ atMs: random.whole(0, 40), order }));
  for (const event of events) queue.push(event);
  const popped = Array.from({ length: 500 }, () => queue.pop()!);
  expect(popped).toEqual([...events].sort((a, b) => a.atMs - b.atMs || a.order - b.order));
  expect(queue.pop()).toBeUndefined();
});

test("seeds that differ in one part give other sequences, and each is spread over [0, 1)", () => {
  const firsts = Array.from({ length: 1_000 }, (_, i) => new Random(mixSeed(7, i, 2)).next());
  expect(new Set(firsts).size).toBe(1_000);
  for (let tenth = 0; tenth < 10; tenth++) {
    const inside = firsts.filter((value) => Math.floor(value * 10) === tenth).length;
    expect(inside).toBeGreaterThan(60);
    expect(inside).toBeLessThan(140);
  }
});
