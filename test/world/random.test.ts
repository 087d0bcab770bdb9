import { expect, test } from "vitest";
import { mixSeed, Random } from "./random.js";

test("seeds that differ in one part give other sequences, and each is spread over [0, 1)", () => {
  const firsts = Array.from({ length: 1_000 }, (_, i) => new Random(mixSeed(7, i, 2)).next());
  expect(new Set(firsts).size).toBe(1_000);
  for (let tenth = 0; tenth < 10; tenth++) {
    const inside = firsts.filter((value) => Math.floor(value * 10) === tenth).length;
    expect(inside).toBeGreaterThan(60);
    expect(inside).toBeLessThan(140);
  }
});
