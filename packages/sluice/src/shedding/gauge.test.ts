import { expect, test } from "vitest";
import { Gauge } from "./gauge.js";

const asks = { rank: 0.5, fairHash: undefined, chance: 0.5, looks: false };
const thresholds = [0.5, 1, 2];

test("each class fills the server up to its threshold; above 1 there is room above the limit", () => {
  const gauge = new Gauge({ limit: 20, thresholds, isFair: false });
  expect([gauge.roomOf(0), gauge.roomOf(1), gauge.roomOf(2)]).toEqual([10, 20, 40]);
  for (let i = 0; i < 10; i++) gauge.began(0);
  expect(gauge.passes(0, asks)).toBe(false);
  expect(gauge.passes(1, asks)).toBe(true);
  expect(gauge.utilisation).toBe(0.5);
});

test("a small limit leaves the class above 1 at least ten places more", () => {
  expect(new Gauge({ limit: 2, thresholds, isFair: false }).roomOf(2)).toBe(12);
});

test("a probe of an estimated limit leaves the class above 1 its room above the limit", () => {
  const gauge = new Gauge({ limit: "auto", thresholds, isFair: false });
  for (let i = 0; i < 16; i++) gauge.began(0);
  let nowMs = 0;
  while (gauge.limit === gauge.settledLimit) {
    nowMs++;
    gauge.ended(nowMs, 10);
    gauge.began(nowMs);
  }
  expect([gauge.limit, gauge.settledLimit]).toEqual([8, 16]);
  expect([gauge.roomOf(1), gauge.roomOf(2)]).toEqual([8 - 16, 8 + 16 - 16]);
});

test("without a limit requests in flight do not count, and without a measurement everything passes", () => {
  const gauge = new Gauge({ limit: undefined, thresholds, isFair: false });
  for (let i = 0; i < 1_000; i++) gauge.began(0);
  expect(gauge.passes(0, asks)).toBe(true);
  expect([gauge.limit, gauge.roomOf(0), gauge.utilisation]).toEqual([undefined, undefined, 0]);
});

test("a clock that steps back or a process that was paused moves the valves only a little", () => {
  const gauge = new Gauge({ limit: undefined, thresholds, isFair: false });
  expect(gauge.isDue(5_000)).toBe(true);
  gauge.measure(5_000, 1);
  expect(gauge.shareOf(1)).toBe(1);
  expect(gauge.isDue(5_050)).toBe(false);
  expect(gauge.isDue(4_000)).toBe(true);
  gauge.measure(4_000, 1);
  expect(gauge.shareOf(0)).toBe(1);
  gauge.measure(4_000 + 3_600_000, 1);
  expect(gauge.shareOf(0)).toBeGreaterThan(0.3);
  gauge.measure(Number.NaN, 1);
  expect(gauge.shareOf(0)).toBeGreaterThan(0.3);
});

test("a gauge that replaces another keeps the requests in flight", () => {
  const before = new Gauge({ limit: 5, thresholds, isFair: false });
  before.began(0);
  const after = new Gauge({ limit: 9, thresholds, isFair: true }, before);
  expect(after.inFlight).toBe(1);
  after.ended(1, undefined);
  expect(after.inFlight).toBe(0);
});
