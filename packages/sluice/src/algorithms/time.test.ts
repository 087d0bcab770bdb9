/** Edges of time, on the models: time is an argument. */
import { expect, test } from "vitest";
import { compilePolicy } from "../rules/compile-policy.js";
import { boundariesAround } from "./calendar.js";
import { models } from "./models.js";
import type { Policy } from "./policy.js";

const START_MS = 1_795_000_000_000;
const utc = (text: string): number => Date.parse(text);

/** A key under one policy; `at` charges if allowed, and returns whether it was. */
function key(policy: Policy): { at(nowMs: number, cost?: number): boolean; remainingAt(nowMs: number): number } {
  const model = models[policy.stored];
  const state = model.fresh();
  let n = 0;
  return {
    at(nowMs, cost = 1) {
      const verdict = model.look(state, policy, cost, nowMs);
      if (verdict.allowed) model.charge(state, policy, { cost, nowMs, requestId: `e${n++}` }, verdict);
      return verdict.allowed;
    },
    remainingAt: (nowMs) => model.look(state, policy, 0, nowMs).remaining,
  };
}

test("a rolling window allows again exactly when the oldest leaves", () => {
  const ann = key(compilePolicy({ algorithm: "rolling-window", limit: 2, window: "1s" }));
  expect([ann.at(START_MS), ann.at(START_MS + 400), ann.at(START_MS + 999)]).toEqual([true, true, false]);
  expect([ann.at(START_MS + 1_000), ann.at(START_MS + 1_399), ann.at(START_MS + 1_400)]).toEqual([true, false, true]);
});

test("two requests in the same millisecond are counted as two", () => {
  const ann = key(compilePolicy({ algorithm: "rolling-window", limit: 2, window: "1s" }));
  expect([ann.at(START_MS), ann.at(START_MS), ann.at(START_MS)]).toEqual([true, true, false]);
});

test("a fixed window admits twice its limit around its edge, which is why the rolling window exists", () => {
  const ann = key(compilePolicy({ algorithm: "fixed-window", limit: 2, window: "1s" }));
  expect([ann.at(START_MS - 1, 2), ann.at(START_MS, 2), ann.at(START_MS + 999)]).toEqual([true, true, false]);
});

test.each(["token-bucket", "gcra"] as const)(
  "%s: a refill of a third of a token per millisecond does not drift over a million operations",
  (algorithm) => {
    // 1000 tokens every 3000 ms; asked each ms, exactly every third request passes once the bucket is empty.
    const ann = key(compilePolicy({ algorithm, limit: 1_000, window: "3s" }));
    expect(ann.at(START_MS, 1_000)).toBe(true);
    let passed = 0;
    for (let i = 1; i <= 1_000_000; i++) if (ann.at(START_MS + i)) passed++;
    expect(passed).toBe(Math.floor(1_000_000 / 3));
  },
);

test("a refill that no double can represent does not drift over a million operations", () => {
  const ann = key(compilePolicy({ algorithm: "token-bucket", limit: 7, refill: { amount: 7, every: "86400001ms" } }));
  expect(ann.at(START_MS, 7)).toBe(true);
  for (let i = 1; i < 1_000_000; i++) ann.at(START_MS + i * 86, 7);
  expect(ann.at(START_MS + 86_400_000, 7)).toBe(false);
  expect(ann.at(START_MS + 86_400_001, 7)).toBe(true);
});

test.each(["1ms", "365d"])("every algorithm holds a limit of 1 and of 1 000 000 in a window of %s", (window) => {
  for (const limit of [1, 1_000_000]) {
    for (const policy of [
      compilePolicy({ algorithm: "token-bucket", limit, window }),
      compilePolicy({ algorithm: "gcra", limit, window }),
      compilePolicy({ algorithm: "fixed-window", limit, window }),
      compilePolicy({ algorithm: "sliding-counter", limit, window }),
      compilePolicy({ algorithm: "rolling-window", limit, window }),
      compilePolicy({ algorithm: "concurrency", limit, ttl: window }),
    ]) {
      const ann = key(policy);
      expect([policy.stored, ann.at(START_MS, limit), ann.at(START_MS)]).toEqual([policy.stored, true, false]);
      expect(ann.remainingAt(START_MS)).toBe(0);
      const longAfterMs = START_MS + 3 * 365 * 86_400_000;
      expect([policy.stored, ann.at(longAfterMs, limit)]).toEqual([policy.stored, true]);
    }
  }
});

test("time that steps back frees nothing, in every algorithm", () => {
  for (const policy of [
    compilePolicy({ algorithm: "token-bucket", limit: 2, window: "1m" }),
    compilePolicy({ algorithm: "fixed-window", limit: 2, window: "1m" }),
    compilePolicy({ algorithm: "sliding-counter", limit: 2, window: "1m" }),
    compilePolicy({ algorithm: "rolling-window", limit: 2, window: "1m" }),
  ]) {
    const ann = key(policy);
    expect(ann.at(START_MS, 2)).toBe(true);
    for (const backMs of [1, 30_000, 60_000, 3_600_000])
      expect([policy.stored, ann.at(START_MS - backMs)]).toEqual([policy.stored, false]);
    expect([policy.stored, ann.at(START_MS + 180_000, 2)]).toEqual([policy.stored, true]);
  }
});

test("after a step back, waits follow the key's own clock", () => {
  for (const algorithm of ["fixed-window", "rolling-window", "token-bucket"] as const) {
    const policy = compilePolicy({ algorithm, limit: 2, window: "1m" });
    const model = models[policy.stored];
    const state = model.fresh();
    const charged = model.look(state, policy, 2, START_MS);
    model.charge(state, policy, { cost: 2, nowMs: START_MS, requestId: "e" }, charged);
    const before = model.look(state, policy, 2, START_MS);
    const back = model.look(state, policy, 2, START_MS - 50_000);
    expect([algorithm, back.retryAfterMs, back.resetAfterMs]).toEqual([
      algorithm,
      before.retryAfterMs + 50_000,
      before.resetAfterMs + 50_000,
    ]);
  }
});

test.each(["token-bucket", "gcra", "fixed-window", "sliding-counter", "rolling-window"] as const)(
  "%s: after a step back by more than a window, earlier charges count from now, and for no longer than any other",
  (algorithm) => {
    const policy = compilePolicy({ algorithm, limit: 2, window: "1m" });
    const model = models[policy.stored];
    const ann = key(policy);
    const backMs = START_MS - 3_600_000 + 7;
    expect(ann.at(START_MS, 2)).toBe(true);
    // A new counter that is used up now: what was charged ahead is freed no sooner, and at the latest when this one is empty.
    const state = model.fresh();
    const charged = model.look(state, policy, 2, backMs);
    model.charge(state, policy, { cost: 2, nowMs: backMs, requestId: "e" }, charged);
    const { retryAfterMs, resetAfterMs } = model.look(state, policy, 2, backMs);
    expect(ann.at(backMs)).toBe(false);
    for (let ms = 1; ms < retryAfterMs; ms += 977) expect([ms, ann.at(backMs + ms, 2)]).toEqual([ms, false]);
    expect(ann.at(backMs + resetAfterMs, 2)).toBe(true);
  },
);

test("a calendar window charged a month ahead counts in the present one", () => {
  const ann = key(compilePolicy({ algorithm: "fixed-window", limit: 1, window: "day", align: "calendar" }));
  expect(ann.at(utc("2026-12-15T12:00:00Z"))).toBe(true);
  expect(ann.at(utc("2026-11-15T13:00:00Z"))).toBe(false);
  expect(ann.at(utc("2026-11-15T23:59:59Z"))).toBe(false);
  expect(ann.at(utc("2026-11-16T00:00:00Z"))).toBe(true);
});

test.each([
  {
    unit: "day",
    timezone: "UTC",
    at: "2026-11-15T13:00:00Z",
    start: "2026-11-15T00:00:00Z",
    end: "2026-11-16T00:00:00Z",
  },
  {
    unit: "day",
    timezone: "Pacific/Auckland",
    at: "2026-11-15T13:00:00Z",
    start: "2026-11-15T11:00:00Z",
    end: "2026-11-16T11:00:00Z",
  },
  {
    unit: "day",
    timezone: "Europe/Berlin",
    at: "2026-03-29T10:00:00Z",
    start: "2026-03-28T23:00:00Z",
    end: "2026-03-29T22:00:00Z",
  },
  {
    unit: "day",
    timezone: "Europe/Berlin",
    at: "2026-10-25T10:00:00Z",
    start: "2026-10-24T22:00:00Z",
    end: "2026-10-25T23:00:00Z",
  },
  // Clocks went forward at midnight: the day began at 01:00 local time.
  {
    unit: "day",
    timezone: "America/Santiago",
    at: "2026-09-06T12:00:00Z",
    start: "2026-09-06T04:00:00Z",
    end: "2026-09-07T03:00:00Z",
  },
  {
    unit: "week",
    timezone: "America/New_York",
    at: "2026-11-15T13:00:00Z",
    start: "2026-11-09T05:00:00Z",
    end: "2026-11-16T05:00:00Z",
  },
  {
    unit: "month",
    timezone: "Asia/Kolkata",
    at: "2026-02-28T19:00:00Z",
    start: "2026-02-28T18:30:00Z",
    end: "2026-03-31T18:30:00Z",
  },
] as const)(
  "the $unit in $timezone that holds $at begins and ends by the wall clock there",
  ({ unit, timezone, at, start, end }) => {
    const boundaries = boundariesAround({ unit, timezone }, utc(at));
    expect(boundaries.slice(1, 3).map((ms) => new Date(ms).toISOString())).toEqual(
      [start, end].map((text) => new Date(utc(text)).toISOString()),
    );
    expect([...boundaries]).toEqual([...boundaries].sort((a, b) => a - b));
  },
);
