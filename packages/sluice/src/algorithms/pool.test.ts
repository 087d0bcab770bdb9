import { describe, expect, test } from "vitest";
import { askForPool, fillPool, lookAtPool, type PoolFill, type PoolState, pool, usePool } from "./pool.js";

const policy = { stored: "pool", limit: 100, largestCost: 100 } as const;
const ASK = { name: 7, onlySeq: 0, givesBack: "no", leaseMs: 500 } as const;
const FILL: PoolFill = {
  seq: 0,
  isAnswered: true,
  units: 10,
  kept: 0,
  unitsEndMs: 2_000,
  lowPart: 0.5,
  renewAtMs: 1_700,
  refusedForMs: 0,
  refusedCost: 1,
  retryAfterMs: 0,
  resetAfterMs: 0,
  rate: 0,
  share: 0.2,
};

/** A pool that asked at 1000 and was filled at 1100. */
function filled(more: Partial<PoolFill> = {}): PoolState {
  const state = pool.fresh();
  const { asked } = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_000 });
  expect(fillPool(state, { ...FILL, seq: asked.numbers.seq, ...more }, 1_100)).toBe(true);
  return state;
}

const look = (state: PoolState, cost: number, nowMs: number, beside = 0) =>
  lookAtPool(state, policy, { cost, nowMs, beside });

describe("a pool", () => {
  test("that nobody has asked for refuses without a wait, and reports that a fetch is due", () => {
    expect(look(pool.fresh(), 1, 1_000)).toMatchObject({ allowed: false, retryAfterMs: 0, resetAfterMs: -1 });
  });

  test("hands out what it was filled with, until its units expire", () => {
    const state = filled();
    expect(look(state, 10, 1_999)).toMatchObject({ allowed: true, remaining: 10 });
    expect(look(state, 1, 2_000)).toMatchObject({ allowed: false, remaining: 0 });
  });

  test("excludes what instances hold", () => {
    const state = filled();
    expect(look(state, 3, 1_200, 8)).toMatchObject({ allowed: false, remaining: 2 });
  });

  test("reports that a fetch is due at half or before its expiry, but not while one is in flight", () => {
    const state = filled();
    usePool(state, 4, 1_200);
    expect(look(state, 1, 1_200).resetAfterMs).toBe(0);
    usePool(state, 1, 1_200);
    expect(look(state, 1, 1_200).resetAfterMs).toBe(-1);
    askForPool(state, ASK, { heldUnits: 0, nowMs: 1_210 });
    expect(look(state, 1, 1_220).resetAfterMs).toBe(0);
    expect(look(filled(), 1, 1_700).resetAfterMs).toBe(-1);
  });

  test("reports what was used and what it holds; a second ask waits for the first, but not forever", () => {
    const state = filled();
    usePool(state, 3, 1_200);
    const { asked } = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 });
    expect(asked).toMatchObject({ isMine: true, arrived: 3, elapsedMs: 300, numbers: { used: 3, told: 7, name: 7 } });
    expect(askForPool(state, ASK, { heldUnits: 0, nowMs: 1_799 }).asked.isMine).toBe(false);
    expect(askForPool(state, ASK, { heldUnits: 0, nowMs: 1_800 }).asked.isMine).toBe(true);
  });

  test("a use since an ask whose units had expired at home by then is not refunded: home has charged it", () => {
    const state = filled();
    const { asked } = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 });
    usePool(state, 1, 1_310);
    expect(fillPool(state, { ...FILL, seq: asked.numbers.seq, kept: 0, unitsEndMs: 3_000 }, 1_400)).toBe(true);
    pool.refund(state, policy, { cost: 1, nowMs: 1_410, chargedAtMs: 1_310, requestId: "e" });
    expect(state).toMatchObject({ units: 10, used: 1 });
    usePool(state, 1, 1_420);
    pool.refund(state, policy, { cost: 1, nowMs: 1_430, chargedAtMs: 1_420, requestId: "e" });
    expect(state).toMatchObject({ units: 10, used: 1 });
  });

  test("units that instances held when it expired count as used", () => {
    const state = filled();
    const { asked, endsHeld } = askForPool(state, ASK, { heldUnits: 4, nowMs: 2_000 });
    expect(endsHeld).toBe(true);
    expect(asked.numbers).toMatchObject({ used: 4, told: 0, units: 0 });
  });

  test("ignores the fill of a fetch that was overtaken by another, and a repeated fill", () => {
    const state = filled();
    const first = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 }).asked.numbers.seq;
    const second = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_900 }).asked.numbers.seq;
    expect(fillPool(state, { ...FILL, seq: first, kept: 10 }, 1_901)).toBe(false);
    expect(fillPool(state, { ...FILL, seq: second, kept: 10 }, 1_902)).toBe(true);
    expect(fillPool(state, { ...FILL, seq: second, kept: 10 }, 1_903)).toBe(false);
    expect(state.units).toBe(20);
  });

  test("drops what the global store no longer knows", () => {
    const state = filled();
    const { seq } = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 }).asked.numbers;
    fillPool(state, { ...FILL, seq, kept: 0, units: 2 }, 1_400);
    expect(state.units).toBe(2);
  });

  test("remembers a refusal for its cost and above, and reports when to come again", () => {
    const state = filled({ units: 1, refusedForMs: 50, refusedCost: 2, retryAfterMs: 900 });
    expect(look(state, 1, 1_120).allowed).toBe(true);
    expect(look(state, 2, 1_120)).toMatchObject({ allowed: false, retryAfterMs: 880 });
    expect(look(state, 2, 1_150)).toMatchObject({ allowed: false, retryAfterMs: 0 });
  });

  test("expires when its clock goes back, but its number does not go back", () => {
    const state = filled();
    expect(look(state, 1, 900)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 0 });
    const { seq } = state;
    const { asked } = askForPool(state, ASK, { heldUnits: 0, nowMs: 900 });
    expect(asked.numbers).toMatchObject({ told: 0, seq: seq + 1 });
  });

  test("does not know how long ago its last ask was once its clock went back", () => {
    const state = filled();
    const back = askForPool(state, ASK, { heldUnits: 0, nowMs: -600_000 });
    expect(back.asked).toMatchObject({ isMine: true, elapsedMs: 0 });
    expect(askForPool(state, ASK, { heldUnits: 0, nowMs: -599_000 }).asked.elapsedMs).toBe(1_000);
  });

  test("gives back everything that instances do not hold; with if-idle, only if it is idle", () => {
    const state = filled();
    usePool(state, 1, 1_200);
    const busy = askForPool(state, { ...ASK, givesBack: "if-idle" }, { heldUnits: 2, nowMs: 1_300 });
    expect(busy.asked.numbers.told).toBe(9);
    const idle = askForPool(state, { ...ASK, givesBack: "if-idle" }, { heldUnits: 2, nowMs: 1_900 });
    expect(idle.asked.numbers.told).toBe(2);
  });

  test("a charge beyond its units, given back, leaves it no more than it had; once reported, the global store has the debt", () => {
    const state = filled();
    usePool(state, 1_000, 1_200);
    expect(look(state, 1, 1_200)).toMatchObject({ allowed: false, remaining: -990 });
    pool.refund(state, policy, { cost: 1_000, nowMs: 1_250, chargedAtMs: 1_200, requestId: "" });
    expect(state).toMatchObject({ units: 10, used: 0 });
    usePool(state, 12, 1_260);
    const { asked } = askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 });
    expect(asked.numbers).toMatchObject({ used: 12, told: 0, units: 0 });
  });

  test("takes back a unit whose use it has not reported", () => {
    const state = filled();
    usePool(state, 2, 1_200);
    pool.refund(state, policy, { cost: 1, nowMs: 1_250, chargedAtMs: 1_200, requestId: "" });
    expect(state).toMatchObject({ units: 9, used: 1 });
    askForPool(state, ASK, { heldUnits: 0, nowMs: 1_300 });
    pool.refund(state, policy, { cost: 1, nowMs: 1_350, chargedAtMs: 1_200, requestId: "" });
    expect(state).toMatchObject({ units: 9, used: 1 });
  });
});
