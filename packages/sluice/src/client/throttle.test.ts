import { expect, test } from "vitest";
import { Throttle } from "./throttle.js";

let state = 1;
function random(): number {
  state = (state * 48_271) % 2_147_483_647;
  return state / 2_147_483_647;
}

/** Sends `count` requests of which the backend accepts a share; returns how many reached it. */
function send(throttle: Throttle, options: { count: number; accepts: (n: number) => boolean; nowMs: number }): number {
  let sent = 0;
  for (let i = 0; i < options.count; i++) {
    if (throttle.drops(options.nowMs, random())) continue;
    throttle.ended(options.nowMs, options.accepts(sent++));
  }
  return sent;
}

test("a backend that accepts at least half of what it gets is left alone", () => {
  const throttle = new Throttle();
  expect(send(throttle, { count: 1_000, accepts: (n) => n % 2 === 0, nowMs: 1 })).toBeGreaterThan(990);
});

test("the share dropped is max(0, (requests - 2 accepts) / (requests + 1))", () => {
  const throttle = new Throttle();
  for (let i = 0; i < 99; i++) throttle.ended(0, i < 10);
  expect(throttle.share(0)).toBeCloseTo(79 / 100);
});

test("a backend that accepts nothing still gets a few requests", () => {
  const throttle = new Throttle();
  const sent = send(throttle, { count: 10_000, accepts: () => false, nowMs: 0 });
  expect(sent).toBeGreaterThan(5);
  expect(sent).toBeLessThan(200);
});

test("refusals are forgotten after half a minute", () => {
  const throttle = new Throttle();
  send(throttle, { count: 1_000, accepts: () => false, nowMs: 0 });
  expect(throttle.share(15_000)).toBeGreaterThan(0.9);
  expect(throttle.share(30_000)).toBe(0);
});

test("a burst of first requests is sent in full", () => {
  const throttle = new Throttle();
  expect(Array.from({ length: 100 }, () => throttle.drops(0, 0)).filter(Boolean)).toEqual([]);
});

test("it recovers when the backend does", () => {
  const throttle = new Throttle();
  send(throttle, { count: 1_000, accepts: () => false, nowMs: 0 });
  let nowMs = 0;
  for (let i = 0; i < 180; i++) {
    nowMs += 1_000;
    send(throttle, { count: 50, accepts: () => true, nowMs });
  }
  expect(throttle.share(nowMs)).toBe(0);
});
