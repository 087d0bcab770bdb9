import { expect, test } from "vitest";
import { FIRST_LIMIT, LimitEstimator } from "./limit-estimator.js";

/** A server of `places`, each request of 10 ms, always with as many in flight as the limit allows; so long in virtual time. */
function saturate(estimator: LimitEstimator, places: number, seconds: number, startMs = 0): number {
  let nowMs = startMs;
  const endMs = startMs + seconds * 1000;
  while (nowMs < endMs) {
    const inFlight = Math.max(1, Math.floor(estimator.limit));
    const latencyMs = 10 * Math.max(1, inFlight / places);
    const betweenMs = latencyMs / inFlight;
    nowMs += betweenMs;
    estimator.changes(nowMs, inFlight);
    estimator.ended(nowMs, latencyMs);
  }
  return nowMs;
}

test.each([4, 16, 64, 400])("finds the knee of a server of %i places, and stays a little above it", (places) => {
  const estimator = new LimitEstimator();
  const nowMs = saturate(estimator, places, 60);
  expect(estimator.estimate).toBeGreaterThan(places * 0.95);
  expect(estimator.estimate).toBeLessThan(places * 1.6 + 2);
  saturate(estimator, places, 60, nowMs);
  expect(estimator.estimate).toBeGreaterThan(places * 0.95);
});

test("a process that pauses once, whenever that is, sends the limit of four places up by one step at most", () => {
  let highest = 0;
  for (let pausesAtMs = 50; pausesAtMs < 3_000; pausesAtMs += 25) {
    const estimator = new LimitEstimator();
    let nowMs = saturate(estimator, 4, pausesAtMs / 1000) + 400;
    while (nowMs < 6_000) {
      nowMs = saturate(estimator, 4, 0.05, nowMs);
      highest = Math.max(highest, estimator.estimate);
    }
  }
  expect(highest).toBeLessThanOrEqual(1.5 * FIRST_LIMIT);
});

test("follows a server that loses and regains places", () => {
  const estimator = new LimitEstimator();
  let nowMs = saturate(estimator, 100, 30);
  nowMs = saturate(estimator, 10, 120, nowMs);
  expect(estimator.estimate).toBeLessThan(20);
  saturate(estimator, 100, 30, nowMs);
  expect(estimator.estimate).toBeGreaterThan(90);
});

test("learns nothing while the limit holds nothing back", () => {
  const estimator = new LimitEstimator();
  for (let i = 0; i < 10_000; i++) {
    estimator.changes(i * 10, 3);
    estimator.ended(i * 10, 30);
  }
  expect(estimator.estimate).toBe(FIRST_LIMIT);
});

test("clocks that step back and latencies of 0 leave a number", () => {
  const estimator = new LimitEstimator();
  for (const nowMs of [100, 50, 1e9, 0, 200]) {
    for (let i = 0; i < 500; i++) {
      estimator.changes(nowMs + i, 20);
      estimator.ended(nowMs + i, 0);
    }
  }
  expect(Number.isFinite(estimator.limit)).toBe(true);
  expect(estimator.limit).toBeGreaterThanOrEqual(1);
});
