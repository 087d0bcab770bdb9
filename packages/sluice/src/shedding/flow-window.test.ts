import { expect, test } from "vitest";
import { FlowWindow } from "./flow-window.js";

test("measures the mean number in flight, and the latency by Little's law", () => {
  const window = new FlowWindow();
  window.restart(0, 0);
  window.ended(0);
  window.changes(10, 4);
  window.ended(10);
  window.changes(30, 2);
  window.ended(30);
  // 4 for 10 ms and 2 for 20 ms: 80 ms of requests, two of which ended.
  expect([window.ranMs, window.ends, window.inFlight, window.latencyMs]).toEqual([30, 2, 80 / 30, 40]);
});

test("opens when as many requests have ended as were in flight, and not before its time", () => {
  const window = new FlowWindow();
  window.changes(0, 3);
  window.restart(0, 0);
  for (const [nowMs, ends] of [
    [1, 0],
    [2, 0],
    [3, 0],
    [4, 1],
  ] as const) {
    window.changes(nowMs, 3);
    window.ended(nowMs);
    expect(window.ends).toBe(ends);
  }
  window.restart(4, 100);
  for (let nowMs = 5; nowMs <= 104; nowMs++) {
    window.changes(nowMs, 3);
    window.ended(nowMs);
  }
  expect([window.ends, window.ranMs]).toEqual([0, 0]);
  window.changes(106, 3);
  window.ended(106);
  expect([window.ends, window.ranMs]).toEqual([1, 2]);
});

test("reports the longest gap since it opened, not an earlier one", () => {
  const window = new FlowWindow();
  window.restart(0, 0);
  window.changes(500, 1);
  window.ended(500);
  expect(window.longestGapMs).toBe(0);
  for (const nowMs of [510, 560, 570]) window.changes(nowMs, 1);
  expect(window.longestGapMs).toBe(50);
});

test("a clock that steps back adds nothing", () => {
  const window = new FlowWindow();
  window.restart(0, 0);
  window.ended(0);
  window.changes(100, 1);
  window.changes(50, 1);
  window.ended(50);
  expect(window.latencyMs).toBe(100);
});
