import type { AdaptiveStats, SheddingStats } from "sluice";
import { expect, test } from "vitest";
import { LoadReadings, meanOf, meanShare, readingNames } from "./load-readings.js";

const shedding = (given: Partial<SheddingStats> = {}): SheddingStats => ({
  rule: "keep",
  utilisation: 0.5,
  signals: { inflight: 0.25 },
  limit: 40,
  inFlight: 10,
  classes: [{ name: "normal", threshold: 0.92, passed: 7, shed: 2 }],
  ...given,
});
const adaptive = (rule: string, limit: number): AdaptiveStats => ({
  rule,
  limit,
  configured: 100,
  min: 20,
  max: 200,
  target: 0.8,
  utilisation: undefined,
  raised: 0,
  lowered: 0,
  leads: true,
});

function readings(stats: { shedding?: SheddingStats[]; adaptive?: AdaptiveStats[]; waiting?: [string, number][] }) {
  const load = new LoadReadings({
    sheddingStats: () => stats.shedding ?? [],
    adaptiveStats: () => stats.adaptive ?? [],
    waitingStats: () => new Map(stats.waiting ?? []),
  });
  const of = (rule: string) => {
    const cells = new Map(load.rules()).get(rule)!;
    return Object.fromEntries(readingNames.map((name, i) => [name, cells[i]!]).filter(([, value]) => value !== 0));
  };
  return { load, of };
}

test("readings are summed, so that the mean is the sum divided by their number", () => {
  const stats = {
    shedding: [shedding()],
    adaptive: [adaptive("tuned", 90)],
    waiting: [["paced", 3]] as [string, number][],
  };
  const { load, of } = readings(stats);
  load.sample();
  stats.shedding = [shedding({ signals: { inflight: 0.75, reported: 0.9 }, inFlight: 30 })];
  stats.adaptive = [adaptive("tuned", 80)];
  load.sample();
  expect(of("keep")).toEqual({
    inFlightUse: 1_000,
    inFlightUses: 2,
    reportedUse: 900,
    reportedUses: 1,
    places: 80,
    inFlight: 40,
    placesSeen: 2,
  });
  expect(of("tuned")).toEqual({ limit: 170, limits: 2 });
  expect(of("paced")).toEqual({ waiting: 6 });
  expect([...load.classes()]).toEqual([["class:keep:normal", [7, 2]]]);
});

test("a mean without readings is unknown, not 0", () => {
  expect(meanOf(undefined, undefined)).toBeNull();
  expect(meanOf(undefined, 2)).toBe(0);
  expect(meanShare(1_500, 2)).toBe(0.75);
});

test("the number of rules that are read is bounded, however many come and go", () => {
  const stats: { adaptive: AdaptiveStats[] } = { adaptive: [] };
  const { load } = readings(stats);
  for (let round = 0; round < 20; round++) {
    stats.adaptive = Array.from({ length: 150 }, (_, i) => adaptive(`r${round}-${i}`, 50));
    load.sample();
  }
  expect([...load.rules()].length).toBe(400);
});
