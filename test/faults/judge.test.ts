/** The judge can convict: histories made by hand, guilty and not. */
import { describe, expect, test } from "vitest";
import { type Answer, exactAfterMs, excesses, type LateTurn, summary, waits } from "./judge.js";

const admitted = (decidedAtMs: number, key = "k"): Answer => ({
  key,
  sentAtMs: decidedAtMs,
  answeredAtMs: decidedAtMs + 1,
  allowed: true,
  decidedAtMs,
});
const byPolicy = (atMs: number): Answer => ({
  key: "k",
  sentAtMs: atMs,
  answeredAtMs: atMs + 50,
  allowed: true,
  degraded: "allow",
});
const limit = { limit: 3, windowMs: 1_000 };

describe("admitted beyond the limit", () => {
  test("as many as the limit in any window are innocent, however the windows lie", () => {
    const history = [0, 400, 800, 1_000, 1_400, 1_800].map((atMs) => admitted(atMs));
    expect(excesses(history, limit)).toEqual([]);
  });

  test("one more in a window is found, wherever the window begins", () => {
    const history = [0, 400, 800, 999, 1_400].map((atMs) => admitted(atMs));
    expect(excesses(history, limit)).toEqual([{ key: "k", count: 1, endsAtMs: 999 }]);
  });

  test("a burst over an aligned boundary, which a fixed window would let pass, is found", () => {
    const history = [900, 950, 990, 1_010, 1_020, 1_030].map((atMs) => admitted(atMs));
    expect(excesses(history, limit)).toEqual([{ key: "k", count: 3, endsAtMs: 1_030 }]);
  });

  test("each key has its own limit, and the order of the record does not matter", () => {
    const history = [admitted(30, "b"), admitted(20, "a"), admitted(10, "b"), admitted(40, "b"), admitted(5, "b")];
    expect(excesses(history, limit)).toEqual([{ key: "b", count: 1, endsAtMs: 40 }]);
  });

  test("what a policy let pass is not held against the store", () => {
    expect(excesses([10, 20, 30, 40].map(byPolicy), limit)).toEqual([]);
    expect(summary([10, 20].map(byPolicy))).toMatchObject({ checks: 2, byPolicy: 2, lastByPolicyMs: 70 });
  });
});

describe("how long callers waited", () => {
  const slow: Answer = { key: "k", sentAtMs: 100, answeredAtMs: 190, allowed: true };

  const judged = (...lateTurns: LateTurn[]) => waits([slow], { deadlineMs: 50, lateTurns });

  test("the longest wait is told", () => {
    expect(judged()).toEqual({ worstMs: 90, worstOwnMs: 90 });
  });

  test("what turns of the loop were late after the deadline is taken off, once", () => {
    expect(judged({ fromMs: 155, toMs: 185 }).worstOwnMs).toBe(60);
    expect(judged({ fromMs: 155, toMs: 160 }, { fromMs: 165, toMs: 185 }).worstOwnMs).toBe(65);
    expect(judged({ fromMs: 180, toMs: 300 }).worstOwnMs).toBe(80);
  });

  test("the rest of a late turn in which the check was sent is taken off", () => {
    expect(judged({ fromMs: 82, toMs: 112 }).worstOwnMs).toBe(78);
  });

  test("a turn that was late before the deadline starts it anew, up to a second in all", () => {
    expect(judged({ fromMs: 110, toMs: 150 }).worstOwnMs).toBe(40);
    expect(judged({ fromMs: 110, toMs: 112 }).worstOwnMs).toBe(90);
    const never = { ...slow, answeredAtMs: 3_000 };
    const busy = Array.from({ length: 40 }, (_, i) => ({ fromMs: 110 + i * 30, toMs: 135 + i * 30 }));
    expect(waits([never], { deadlineMs: 50, lateTurns: busy }).worstOwnMs).toBeGreaterThan(1_500);
  });

  test("what turns were late after the answer excuses nothing", () => {
    expect(judged({ fromMs: 270, toMs: 300 }).worstOwnMs).toBe(90);
  });
});

describe("when exactness came back", () => {
  test("is the last answer by policy after the moment asked about", () => {
    const history = [byPolicy(10), byPolicy(120), admitted(200), byPolicy(300), admitted(400)];
    expect(exactAfterMs(history, 100)).toBe(250);
    expect(exactAfterMs(history, 350)).toBe(0);
  });

  test("cannot be said where policies answered to the end, or nothing was asked", () => {
    expect(exactAfterMs([admitted(10), byPolicy(20)], 0)).toBeUndefined();
    expect(exactAfterMs([admitted(10)], 100)).toBeUndefined();
  });
});

test("a check that failed its caller is told", () => {
  expect(summary([{ ...byPolicy(1), failure: "closed" }, admitted(2)]).failures).toEqual(["closed"]);
});
