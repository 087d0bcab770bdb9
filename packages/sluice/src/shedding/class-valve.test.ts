import { expect, test } from "vitest";
import { ClassValve } from "./class-valve.js";

const arrival = (rank: number, more: { fairHash?: number; chance?: number; looks?: boolean } = {}) => ({
  rank,
  fairHash: more.fairHash,
  chance: more.chance ?? 0.5,
  looks: more.looks ?? false,
});

/** Closes the valve for requests in flight: it has seen no room for a while. */
function closed(isFair = false): ClassValve {
  const valve = new ClassValve(1, isFair);
  for (let i = 0; i < 100; i++) {
    for (let j = 0; j < 10; j++) valve.passesInFlight(arrival(j / 10, isFair ? { fairHash: j } : {}), 0, 100);
    valve.move(100, undefined);
  }
  return valve;
}

test("without room nothing passes, with plenty of room everything, whatever the valve", () => {
  const valve = closed();
  expect(valve.passesInFlight(arrival(0), 0, 100)).toBe(false);
  expect(valve.passesInFlight(arrival(0), -5, 100)).toBe(false);
  expect(valve.passesInFlight(arrival(0.999), 16, 100)).toBe(true);
});

test("in the band low ranks pass first, and more of them the more room there is", () => {
  const valve = closed();
  const passing = (room: number) =>
    Array.from({ length: 100 }, (_, i) => valve.passesInFlight(arrival(i / 100, { looks: true }), room, 100)).filter(
      Boolean,
    ).length;
  const counts = [1, 5, 10, 14].map(passing);
  expect(counts).toEqual([...counts].sort((a, b) => a - b));
  expect(counts[0]).toBeLessThan(10);
  expect(valve.passesInFlight(arrival(0), 1, 100)).toBe(true);
});

test("the same rank gets the same answer: a retry gains nothing", () => {
  const valve = closed();
  const answers = Array.from({ length: 50 }, () => valve.passesInFlight(arrival(0.7, { looks: true }), 5, 100));
  expect(new Set(answers).size).toBe(1);
});

test("a high measured utilisation closes the valve over seconds, a low one opens it more slowly", () => {
  const valve = new ClassValve(0.9, false);
  const shares: number[] = [];
  for (let i = 0; i < 50; i++) {
    valve.move(100, 1);
    shares.push(valve.share);
  }
  expect(shares[0]).toBeGreaterThan(0.85);
  expect(shares[49]).toBeLessThan(0.02);
  expect(valve.passesMeasured(arrival(0.9))).toBe(false);
  let steps = 0;
  while (valve.share < 1 && steps < 1_000) {
    valve.move(100, 0.2);
    steps++;
  }
  expect(steps).toBeGreaterThan(60);
  expect(steps).toBeLessThan(200);
});

test("at its threshold a class is shed: a measurement of at most 1 could not exceed a threshold of 1", () => {
  const valve = new ClassValve(1, false);
  for (let i = 0; i < 200; i++) valve.move(100, 1);
  expect(valve.share).toBeLessThan(0.01);
  for (let i = 0; i < 400; i++) valve.move(100, 0.9);
  expect(valve.share).toBe(1);
});

test("a single key under a measured utilisation is thinned out, not switched on and off", () => {
  const valve = new ClassValve(0.9, false);
  for (let i = 0; i < 9; i++) valve.move(100, 1);
  const passed = Array.from({ length: 100 }, (_, i) => valve.passesMeasured(arrival(0.4, { chance: i / 100 })));
  expect(passed.filter(Boolean).length).toBeGreaterThan(20);
  expect(passed.filter(Boolean).length).toBeLessThan(80);
});

test("looks do not count as demand", () => {
  const valve = new ClassValve(1, true);
  for (let i = 0; i < 1000; i++) valve.passesInFlight(arrival(0.5, { fairHash: 1, looks: true }), 0, 100);
  valve.move(1000, undefined);
  expect(valve.share).toBe(1);
});

test("a greedy key is shed before a modest one", () => {
  const [greedy, modest] = [0x010101, 0x020202];
  const valve = new ClassValve(1, true);
  for (let i = 0; i < 100; i++) {
    for (let j = 0; j < 20; j++) valve.passesInFlight(arrival(0.5, { fairHash: j < 19 ? greedy : modest }), 1, 100);
    valve.move(100, undefined);
  }
  const looking = { looks: true };
  expect(valve.passesInFlight(arrival(0.5, { fairHash: greedy, ...looking }), 2, 100)).toBe(false);
  expect(valve.passesInFlight(arrival(0.02, { fairHash: modest, ...looking }), 2, 100)).toBe(true);
});
