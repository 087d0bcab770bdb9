import { expect, test } from "vitest";
import { FIRST_LIMIT, LimitEstimator } from "./limit-estimator.js";

/**
 * A server with `places`, each request taking 10 ms times `slowness`, always with as many in flight as the limit allows; for this long in
 * virtual time.
 */
function saturate(estimator: LimitEstimator, places: number, seconds: number, startMs = 0, slowness = 1): number {
  let nowMs = startMs;
  const endMs = startMs + seconds * 1000;
  while (nowMs < endMs) {
    const inFlight = Math.max(1, Math.floor(estimator.limit));
    const latencyMs = 10 * slowness * Math.max(1, inFlight / places);
    const betweenMs = latencyMs / inFlight;
    nowMs += betweenMs;
    estimator.changes(nowMs, inFlight);
    estimator.ended(nowMs, latencyMs);
  }
  return nowMs;
}

test.each([4, 16, 64, 400])("settles at 1.6 times the places of a server with %i", (places) => {
  const estimator = new LimitEstimator();
  const nowMs = saturate(estimator, places, 60);
  expect(estimator.estimate).toBeGreaterThan(places * 1.45);
  expect(estimator.estimate).toBeLessThan(places * 1.75 + 1);
  saturate(estimator, places, 60, nowMs);
  expect(estimator.estimate).toBeGreaterThan(places * 1.45);
  expect(estimator.estimate).toBeLessThan(places * 1.75 + 1);
});

test("halves the limit for a probe, for less than a tenth of the time once settled", () => {
  const estimator = new LimitEstimator();
  let nowMs = saturate(estimator, 16, 60);
  let probing = 0;
  for (let i = 0; i < 6_000; i++) {
    nowMs = saturate(estimator, 16, 0.01, nowMs);
    if (estimator.limit < estimator.estimate) probing++;
  }
  expect(probing).toBeGreaterThan(60);
  expect(probing).toBeLessThan(600);
});

test("noise does not add up: latencies that differ by half from window to window never double the limit", () => {
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
    return seed / 0x7fffffff;
  };
  const estimator = new LimitEstimator();
  let nowMs = saturate(estimator, 16, 60);
  let highest = 0;
  // Slowness is drawn about as often as a window lasts: it makes more difference between windows than the limit.
  for (let i = 0; i < 5_000; i++) {
    nowMs = saturate(estimator, 16, 0.2, nowMs, 0.75 + random() / 2);
    highest = Math.max(highest, estimator.estimate);
  }
  expect(highest).toBeLessThan(2 * 1.6 * 16);
  expect(estimator.estimate).toBeGreaterThan(16);
});

test("a process that pauses once, at any time, raises the limit of four places by at most one step", () => {
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

test("a server that becomes three times slower keeps its limit", () => {
  const estimator = new LimitEstimator();
  let nowMs = saturate(estimator, 16, 60);
  for (let i = 0; i < 60; i++) {
    nowMs = saturate(estimator, 16, 1, nowMs, 3);
    expect(estimator.estimate).toBeGreaterThan(16);
    expect(estimator.estimate).toBeLessThan(2 * 16 * 1.6);
  }
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
  expect([estimator.estimate, estimator.limit]).toEqual([FIRST_LIMIT, FIRST_LIMIT]);
});

test("a probe is abandoned when the load goes away", () => {
  const estimator = new LimitEstimator();
  let nowMs = 0;
  while (estimator.limit === estimator.estimate) nowMs = saturate(estimator, 16, 0.01, nowMs);
  estimator.changes(nowMs + 20_000, 0);
  expect(estimator.limit).toBe(estimator.estimate);
});

test("a load that goes away whenever there is a probe does not raise the limit", () => {
  const estimator = new LimitEstimator();
  let nowMs = saturate(estimator, 16, 20);
  const settled = estimator.estimate;
  const endMs = nowMs + 600_000;
  while (nowMs < endMs) {
    const inFlight = estimator.limit < estimator.estimate ? 2 : Math.floor(estimator.limit);
    const latencyMs = 10 * Math.max(1, inFlight / 16);
    nowMs += latencyMs / inFlight;
    estimator.changes(nowMs, inFlight);
    estimator.ended(nowMs, latencyMs);
  }
  expect(estimator.estimate).toBeGreaterThan(settled / 1.5);
  expect(estimator.estimate).toBeLessThan(1.5 * settled);
});

test("requests that end in the instant in which they began leave a valid number, even in a probe", () => {
  const estimator = new LimitEstimator();
  let nowMs = 0;
  while (estimator.limit === estimator.estimate) nowMs = saturate(estimator, 16, 0.01, nowMs);
  for (let i = 0; i < 500; i++) {
    nowMs++;
    estimator.changes(nowMs, 0);
    estimator.ended(nowMs, 0);
  }
  expect(Number.isFinite(estimator.limit)).toBe(true);
  expect(estimator.limit).toBeGreaterThanOrEqual(1);
});

test("clocks that step back and latencies of 0 leave a valid number", () => {
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

/** Always as many in flight as the limit allows; for `latenessMs` of the latency the requests have ended and wait for this process. */
function saturateLate(
  seconds: number,
  flowOf: (inFlight: number) => { latencyMs: number; latenessMs: number },
): number[] {
  let nowMs = 0;
  let lateness = 0;
  const estimator = new LimitEstimator(() => lateness);
  const estimates: number[] = [];
  while (nowMs < seconds * 1000) {
    const inFlight = Math.max(1, Math.floor(estimator.limit));
    const { latencyMs, latenessMs } = flowOf(inFlight);
    const betweenMs = latencyMs / inFlight;
    nowMs += betweenMs;
    lateness += latenessMs * betweenMs;
    estimator.changes(nowMs, inFlight);
    estimator.ended(nowMs, latencyMs);
    estimates.push(estimator.estimate);
  }
  return estimates;
}

test("a late process adds the requests that wait for it to the limit, and is not mistaken for a slower server", () => {
  // 16 places of 40 ms, and a process that handles each end 120 ms late: 48 more are in flight. If lateness counted as service, the limit
  // would be 1.6 x 64.
  const estimates = saturateLate(60, (inFlight) => ({
    latencyMs: Math.max(160, (40 * inFlight) / 16),
    latenessMs: 120,
  }));
  expect(estimates.at(-1)).toBeGreaterThan(1.6 * 16 + 40);
  expect(estimates.at(-1)).toBeLessThan(1.6 * 16 + 65);
});

test("if this process is the server, lateness is the queue, and the limit does not run away", () => {
  // 20 ms elsewhere, and 2 ms of this process for each request in flight: without lateness every limit would look too low.
  const estimates = saturateLate(240, (inFlight) => ({ latencyMs: 20 + 2 * inFlight, latenessMs: 2 * inFlight }));
  const settled = estimates.slice(estimates.length >> 1);
  expect(Math.max(...settled)).toBeLessThan(45);
  expect(Math.min(...settled)).toBeGreaterThan(10);
});
