import { expect, test } from "vitest";
import { TimeSeries } from "./time-series.js";

test("steps double when the span outgrows them, without losing counts", () => {
  const series = new TimeSeries(2);
  for (let second = 0; second < 1_000; second++) series.row(1_795_000_000_000 + second * 1_000)[0]! += 1;
  series.row(1_795_000_999_999)[1]! += 5;
  const { startMs, stepMs, rows } = series.read();
  expect(startMs).toBe(1_795_000_000_000);
  expect(stepMs).toBe(16_000);
  expect(rows.length).toBe(63);
  expect(rows[0]).toEqual([16, 0]);
  expect(rows.at(-1)).toEqual([8, 5]);
  expect(rows.reduce((sum, [requests]) => sum + requests!, 0)).toBe(1_000);
});

test("a time before the first counts in the first step", () => {
  const series = new TimeSeries(1);
  series.row(10_000)[0]! += 1;
  series.row(5_000)[0]! += 1;
  expect(series.read().rows).toEqual([[2]]);
});
