import { expect, test } from "vitest";
import type { BucketPolicy } from "./policy.js";
import { type BucketState, OLDEST_BIRTH_MS, owedAfter, owedBy, tokenBucket } from "./token-bucket.js";

/** Ten tokens, one every 10 ms. */
const policy: BucketPolicy = { stored: "token-bucket", limit: 10, capacity: 10, amount: 1, scaleMs: 10 };

function charge(state: BucketState, nowMs: number, cost: number, under = policy): void {
  const found = tokenBucket.look(state, under, cost, nowMs);
  tokenBucket.charge(state, under, { cost, nowMs, requestId: "" }, found);
}

const remaining = (state: BucketState, nowMs: number, under = policy): number =>
  tokenBucket.look(state, under, 0, nowMs).remaining;

test("starts full, refills evenly, and never holds more than its capacity", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 10);
  expect([1_009, 1_010, 1_055, 1_100, 9_000].map((nowMs) => remaining(state, nowMs))).toEqual([0, 1, 5, 10, 10]);
});

test("the wait is until the cost has been refilled, and reset until the bucket is full", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 10);
  expect(tokenBucket.look(state, policy, 3, 1_005)).toMatchObject({
    allowed: false,
    retryAfterMs: 25,
    resetAfterMs: 95,
    reason: "limit",
  });
});

test("time that passes twice after a clock step refills once; a bucket far ahead is moved to now", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 10);
  charge(state, 1_050, 5);
  expect([remaining(state, 1_000), remaining(state, 1_050)]).toEqual([0, 0]);
  charge(state, 9_000_000, 10);
  expect([remaining(state, 1_000), remaining(state, 1_050)]).toEqual([0, 5]);
});

test("a rule whose refill changes keeps its missing tokens", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 4);
  expect(remaining(state, 1_000, { ...policy, scaleMs: 25 })).toBe(6);
});

test("a refund gives back what is still missing, not what was charged before the bucket was full", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 4);
  charge(state, 2_000, 4);
  tokenBucket.refund(state, policy, { cost: 4, nowMs: 2_000, chargedAtMs: 1_000, requestId: "" });
  expect(remaining(state, 2_000)).toBe(6);
  tokenBucket.refund(state, policy, { cost: 4, nowMs: 2_000, chargedAtMs: 2_000, requestId: "" });
  expect(remaining(state, 2_000)).toBe(10);
});

test("giving back reports whether tokens were missing", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 1);
  expect(tokenBucket.giveBack(state, policy, { cost: 1, nowMs: 1_001 })).toBe(true);
  expect(tokenBucket.giveBack(state, policy, { cost: 1, nowMs: 1_001 })).toBe(false);
});

test("the stored birth is no older than the stored form can express", () => {
  const slow: BucketPolicy = { ...policy, scaleMs: 10 ** 9 };
  const state = tokenBucket.fresh();
  charge(state, 1_000, 10, slow);
  charge(state, 1_000 + 2 * OLDEST_BIRTH_MS, 1, slow);
  expect(state.bornMs).toBe(1_000 + OLDEST_BIRTH_MS);
});

test("a reservation that was not used gives everything back, at any time", () => {
  const slow: BucketPolicy = { stored: "token-bucket", limit: 100, capacity: 100, amount: 1, scaleMs: 600 };
  for (const nowMs of [1_000, 1_001, 1_599, 1_600, 30_000]) {
    const state = tokenBucket.fresh();
    charge(state, 1_000, 100, slow);
    tokenBucket.refund(state, slow, {
      cost: 100,
      nowMs,
      chargedAtMs: 1_000,
      requestId: "",
      owed: owedBy(state, slow, 1_000),
    });
    expect(remaining(state, nowMs, slow)).toBe(100);
  }
});

test("a reservation gives back no more than the bucket can have lacked since, whatever was given back in between", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 5);
  const first = owedBy(state, policy, 1_000);
  charge(state, 1_000, 5);
  const second = owedBy(state, policy, 1_000);
  tokenBucket.refund(state, policy, { cost: 5, nowMs: 1_000, chargedAtMs: 1_000, requestId: "", owed: first });
  // The bucket lacks 5 - 4 = 1, then 1 + 9: of these nine none may be given back.
  charge(state, 1_040, 9);
  tokenBucket.refund(state, policy, { cost: 5, nowMs: 1_040, chargedAtMs: 1_000, requestId: "", owed: second });
  expect(remaining(state, 1_040)).toBe(1);
});

test.each([
  [1, 10],
  [7, 600],
  [90, 7],
])("what a charge reports is what the bucket lacks, to the millisecond: %i units per ms", (amount, scaleMs) => {
  const odd: BucketPolicy = { stored: "token-bucket", limit: 50, capacity: 50, amount, scaleMs };
  const state = tokenBucket.fresh();
  for (const [nowMs, cost] of [
    [1_000, 1],
    [1_000, 3],
    [1_003, 9],
    [1_001, 2],
  ] as const) {
    const found = tokenBucket.look(state, odd, cost, nowMs);
    tokenBucket.charge(state, odd, { cost, nowMs, requestId: "" }, found);
    const lacked = owedBy(state, odd, nowMs);
    expect(owedAfter(odd, found)).toBeLessThanOrEqual(lacked);
    expect(owedAfter(odd, found)).toBeGreaterThan(lacked - amount);
  }
});

// With a fraction: charged after a reset in the same millisecond.
test.each([1_000, 1_000 + 2 ** -10])(
  "units given back without a name are not given back again by a refund of their charge at %d ms",
  (chargedAtMs) => {
    const state = tokenBucket.fresh();
    charge(state, 1_000, 5);
    const owed = owedBy(state, policy, 1_000);
    tokenBucket.giveBack(state, policy, { cost: 5, nowMs: 1_000 });
    charge(state, 1_000, 4);
    tokenBucket.refund(state, policy, { cost: 5, nowMs: 1_000, chargedAtMs, requestId: "", owed });
    expect(remaining(state, 1_000)).toBe(6);
  },
);

test("refunds beyond those with a known place give back less, and never another's units", () => {
  const slow: BucketPolicy = { ...policy, capacity: 100, limit: 100, scaleMs: 600 };
  const state = tokenBucket.fresh();
  const owed: number[] = [];
  for (let i = 0; i < 40; i++) {
    charge(state, 1_000 + i, 1, slow);
    owed.push(owedBy(state, slow, 1_000 + i));
  }
  // Every other one, so that no two gaps touch.
  for (let i = 39; i > 0; i -= 2)
    tokenBucket.refund(state, slow, { cost: 1, nowMs: 1_100, chargedAtMs: 1_000 + i, requestId: "", owed: owed[i]! });
  expect(state.gaps).toHaveLength(8);
  expect(remaining(state, 1_100, slow)).toBeLessThanOrEqual(80);
  expect(remaining(state, 1_100, slow)).toBeGreaterThanOrEqual(77);
});

test("any number of undos of the newest charge leaves no trace: an older charge then goes back in full", () => {
  const slow: BucketPolicy = { ...policy, scaleMs: 1e9 };
  const state = tokenBucket.fresh();
  const refund = (chargedAtMs: number, owed: number): void =>
    tokenBucket.refund(state, slow, { cost: 1, nowMs: 2_000, chargedAtMs, requestId: "", owed });
  charge(state, 1_000, 1, slow);
  const oldest = owedBy(state, slow, 1_000);
  for (let i = 1; i <= 20; i++) {
    const [first, second] = [1_000 + 10 * i, 1_005 + 10 * i];
    charge(state, first, 1, slow);
    const owedFirst = owedBy(state, slow, first);
    charge(state, second, 1, slow);
    const owedSecond = owedBy(state, slow, second);
    // In both orders: a gap with others behind it goes when they have gone.
    if (i % 2 === 0) refund(first, owedFirst);
    refund(second, owedSecond);
    if (i % 2 === 1) refund(first, owedFirst);
    expect([state.given, state.gaps]).toEqual([0, []]);
  }
  refund(1_000, oldest);
  expect(remaining(state, 2_000, slow)).toBe(10);
});

test("setting the clock back does not undo refill: a refund frees nothing that others charged in that time", () => {
  // Refilled in 100 ms. The charge owes more than the bucket holds, so that it is never full meanwhile.
  for (const backAtMs of [1_000, 1_001, 1_040]) {
    const state = tokenBucket.fresh();
    charge(state, 1_000, 100);
    const owed = owedBy(state, policy, 1_000);
    charge(state, 1_150, 4);
    const ahead = owedBy(state, policy, 1_150);
    charge(state, 1_150, 3);
    tokenBucket.look(state, policy, 0, backAtMs);
    tokenBucket.refund(state, policy, { cost: 100, nowMs: backAtMs, chargedAtMs: 1_000, requestId: "", owed });
    expect(remaining(state, backAtMs)).toBe(3);
    // When the clock reaches this time again, this charge has had the refill of both passes.
    charge(state, backAtMs + 55, 5);
    const before = remaining(state, 1_150);
    tokenBucket.refund(state, policy, { cost: 4, nowMs: 1_150, chargedAtMs: 1_150, requestId: "", owed: ahead });
    expect(remaining(state, 1_150)).toBe(before);
  }
});

test("after a rule was edited and edited back, earlier charges give nothing back", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 8);
  const owed = owedBy(state, policy, 1_000);
  const fast: BucketPolicy = { ...policy, amount: 1, scaleMs: 1 };
  // Seven of the eight are refilled by then.
  charge(state, 1_007, 1, fast);
  charge(state, 1_007, 5);
  tokenBucket.refund(state, policy, { cost: 8, nowMs: 1_007, chargedAtMs: 1_000, requestId: "", owed });
  expect(remaining(state, 1_007)).toBe(3);
});

test.each([
  ["edited", (fast: BucketPolicy) => [fast]],
  ["edited and edited back", (fast: BucketPolicy) => [fast, policy]],
])("after the rate was %s in the same unit, earlier charges give nothing back", (_, edits) => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 8);
  const owed = owedBy(state, policy, 1_000);
  // Ten times as fast: seven of the eight are refilled by then.
  const rates = edits({ ...policy, amount: 10 });
  for (const rate of rates) charge(state, 1_007, 3, rate);
  const before = remaining(state, 1_007);
  tokenBucket.refund(state, policy, { cost: 8, nowMs: 1_007, chargedAtMs: 1_000, requestId: "", owed });
  expect(remaining(state, 1_007)).toBe(before);
  expect(before).toBe(10 - 1 - 3 * rates.length);
});

test("an edit of the rate under which nothing was charged does not affect refunds", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 8);
  const owed = owedBy(state, policy, 1_000);
  tokenBucket.look(state, { ...policy, amount: 10 }, 1, 1_005);
  tokenBucket.refund(state, policy, { cost: 8, nowMs: 1_010, chargedAtMs: 1_000, requestId: "", owed });
  expect(remaining(state, 1_010)).toBe(10);
});

test("after a clock was set back under another rate nothing can be refunded", () => {
  const state = tokenBucket.fresh();
  charge(state, 1_000, 100);
  const owed = owedBy(state, policy, 1_000);
  charge(state, 1_150, 4);
  const slow: BucketPolicy = { ...policy, amount: 2, scaleMs: 100, capacity: 1 };
  tokenBucket.look(state, slow, 0, 1_000);
  const before = tokenBucket.describe(state).missing;
  tokenBucket.refund(state, policy, { cost: 100, nowMs: 1_000, chargedAtMs: 1_000, requestId: "", owed });
  expect(tokenBucket.describe(state).missing).toBe(before);
});

test("a full bucket forgets what a clock that stepped back left ahead, like an expired key", () => {
  const state = tokenBucket.fresh();
  charge(state, 10_000, 3);
  tokenBucket.look(state, policy, 0, 1_000);
  const found = tokenBucket.look(state, policy, 1, 2_000);
  tokenBucket.charge(state, policy, { cost: 1, nowMs: 2_000, requestId: "" }, found);
  expect(found.given).toBeUndefined();
  expect(state).toMatchObject({ given: 0, namelessMs: 0 });
});

test("units given back in the millisecond of a charge are kept, even after a clock step back", () => {
  const state = tokenBucket.fresh();
  charge(state, 10_000, 100);
  tokenBucket.look(state, policy, 0, 1_000);
  charge(state, 1_000, 4);
  const owed = owedBy(state, policy, 1_000);
  tokenBucket.giveBack(state, policy, { cost: 200, nowMs: 1_000 });
  charge(state, 1_000, 4);
  tokenBucket.refund(state, policy, { cost: 4, nowMs: 1_000, chargedAtMs: 1_000, requestId: "", owed });
  expect(remaining(state, 1_000)).toBe(6);
});
