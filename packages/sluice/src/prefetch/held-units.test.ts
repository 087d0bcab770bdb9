import { expect, test } from "vitest";
import type { CheckPlan } from "../check.js";
import { HeldUnits } from "./held-units.js";
import { refundUses } from "./refund-uses.js";
import type { ReplyFromHand } from "./reply-from-hand.js";

const plan: CheckPlan = {
  rule: "r",
  mode: "enforce",
  variant: undefined,
  policy: { stored: "rolling-window-packed", limit: 100_000, windowMs: 1_000, minIntervalMs: 0 },
  keyEnd: "}:r:p",
  onStoreFailure: "local",
  regionTermMs: 0,
  prefetchMs: 20,
  maxWaitMs: 0,
};

/** A key that has long been asked for ten times per millisecond. */
function busy(): HeldUnits {
  const held = new HeldUnits("{*}:r:p", plan, "h", 0);
  held.arrive(10_000);
  return held;
}

test("a cold key fetches nothing along with its request", () => {
  const held = new HeldUnits("{*}:r:p", plan, "h", 0);
  held.arrive(1);
  expect(held.needsFetch(1, 0)).toBe(false);
  held.arrive(1);
  expect(held.needsFetch(1, 50)).toBe(false);
});

test("units of an overtaken fetch are not used: the store has taken them back", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  held.lastFetch();
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  expect(held.units).toBe(0);
});

test("after units arrived dead, none are requested for some terms", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  held.granted(fetch, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_019 });
  held.arrive(500);
  expect(held.nextFetch(0, 1_050)).toMatchObject({ held: 0, want: 0 });
  held.arrive(20_000);
  expect(held.nextFetch(0, 1_150).want).toBeGreaterThan(0);
});

test("a busy key wants what it uses in half a term", () => {
  expect(busy().nextFetch(1, 1_000)).toEqual({ holder: "h", seq: 1, used: 0, held: 0, want: 99, need: 0 });
});

test("what waiting requests need is requested in full, whatever other holders would get", () => {
  const held = busy();
  held.claimed = 40;
  expect(held.nextFetch(1, 1_000)).toMatchObject({ want: 99, need: 40 });
  held.claimed = 500;
  expect(held.nextFetch(1, 1_000)).toMatchObject({ want: 499, need: 499 });
});

test("a key that becomes busy is followed within a few fetches; a single extra request is not", () => {
  const held = new HeldUnits("{*}:r:p", plan, "h", 0);
  for (let atMs = 1; atMs <= 10; atMs++) {
    held.arrive(100);
    held.nextFetch(0, atMs);
  }
  held.arrive(100);
  // Of 100 a millisecond; one weight of its memory alone would have followed to a fifth.
  expect(held.nextFetch(0, 11).want).toBeGreaterThan(900);
  const calm = new HeldUnits("{*}:r:p", plan, "h", 0);
  calm.arrive(2);
  expect(calm.nextFetch(0, 1).want).toBeLessThanOrEqual(1);
});

test("units live for less than their term, counted from when the fetch was sent", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  held.granted(fetch, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_015 });
  expect(held.has(100, 1_018)).toBe(true);
  expect(held.has(1, 1_018.7)).toBe(false);
});

test("the next fetch reports what was used and what is in hand, and both live on", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  held.use(60);
  const second = held.nextFetch(0, 1_010);
  expect(second).toMatchObject({ seq: 2, used: 60, held: 40 });
  held.use(10);
  held.granted(second, { units: 50, kept: 40, lifeMs: 20 }, { plan, sentMonotonicMs: 1_010, nowMonotonicMs: 1_011 });
  expect(held.units).toBe(80);
  expect(held.has(80, 1_028)).toBe(true);
});

test("units in hand that had expired when the fetch arrived are gone", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  const second = held.nextFetch(0, 1_018);
  held.granted(second, { units: 5, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_018, nowMonotonicMs: 1_040 });
  expect(held.units).toBe(5);
  expect(held.has(5, 1_036)).toBe(true);
});

test("the next units are fetched ahead when few are left, or when their expiry is near", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  held.granted(fetch, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  expect(held.needsFetchAhead(1_001)).toBe(false);
  held.use(50);
  expect(held.needsFetchAhead(1_001)).toBe(true);
  held.unuse(50);
  expect(held.needsFetchAhead(1_015)).toBe(true);
});

test("a changed rule gives back what was fetched under the old one, including what is in flight", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  held.granted(fetch, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  const second = held.nextFetch(0, 1_002);
  held.ask({ ...plan }, 1_003);
  held.granted(second, { units: 50, kept: 100, lifeMs: 20 }, { plan, sentMonotonicMs: 1_002, nowMonotonicMs: 1_003 });
  expect(held.units).toBe(0);
  expect(held.nextFetch(0, 1_004)).toMatchObject({ held: 0 });
});

test("the last fetch settles and gives everything back", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  held.granted(fetch, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  held.use(3);
  expect(held.lastFetch()).toEqual({ holder: "h", seq: 2, used: 3, held: 0, want: 0, need: 0 });
  expect(held.has(1, 1_002)).toBe(false);
});

test("units that expired in hand are not revived by the next grant", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  // The answer comes after the units have expired; or it came in time, and nobody used them.
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_030 });
  const second = held.nextFetch(0, 1_030);
  expect(second).toMatchObject({ used: 0, held: 0 });
  held.granted(second, { units: 5, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_030, nowMonotonicMs: 1_031 });
  expect(held.units).toBe(5);
});

test("a reset keeps uses that a fetch in flight has reported: otherwise later ones would pass uncharged", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  held.use(30);
  const second = held.nextFetch(0, 1_002);
  expect(second.used).toBe(30);
  held.use(20);
  held.beforeReset()();
  held.granted(second, { units: 0, kept: 70, lifeMs: 20 }, { plan, sentMonotonicMs: 1_002, nowMonotonicMs: 1_003 });
  held.use(10);
  expect(held.nextFetch(0, 1_004)).toMatchObject({ used: 40, held: 40 });
});

test("a reset forgets earlier uses once it is done; uses made meanwhile stay", () => {
  const held = busy();
  const first = held.nextFetch(0, 1_000);
  held.granted(first, { units: 100, kept: 0, lifeMs: 20 }, { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 });
  held.use(30);
  const forget = held.beforeReset();
  held.use(5);
  const before = held.uses;
  forget();
  // A refund of a forgotten use finds that it moved on, and gives nothing back.
  expect(before.movedTo).toBe(held.uses);
  expect(held.nextFetch(0, 1_002)).toMatchObject({ used: 5, held: 65 });
});

test("a busy key that got less than it wanted pauses for an eighth of a term, and fetches ahead only after a quarter", () => {
  const held = busy();
  const fetch = held.nextFetch(0, 1_000);
  const sent = { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 };
  held.granted(fetch, { units: fetch.want - 1, kept: 0, lifeMs: 20 }, sent);
  expect(held.pausesUntilMonotonicMs).toBe(1_002.5);
  held.use(held.units - 1);
  expect(held.needsFetchAhead(1_004)).toBe(false);
  expect(held.needsFetchAhead(1_005)).toBe(true);
});

test("a key that got all it wanted, or is rarely used, does not pause", () => {
  const sent = { plan, sentMonotonicMs: 1_000, nowMonotonicMs: 1_001 };
  const served = busy();
  const all = served.nextFetch(0, 1_000);
  served.granted(all, { units: all.want, kept: 0, lifeMs: 20 }, sent);
  expect(served.pausesUntilMonotonicMs).toBe(0);
  const slow = new HeldUnits("{*}:r:p", plan, "h", 0);
  slow.arrive(1_000);
  slow.granted(slow.nextFetch(0, 1_000), { units: 1, kept: 0, lifeMs: 20 }, sent);
  expect(slow.pausesUntilMonotonicMs).toBe(0);
});

test("a pause is never longer than ten milliseconds, however long the term", () => {
  const long = { ...plan, prefetchMs: 60_000 };
  const held = new HeldUnits("{*}:r:p", long, "h", 0);
  held.arrive(10_000_000);
  const fetch = held.nextFetch(0, 1_000_000);
  held.granted(
    fetch,
    { units: 1, kept: 0, lifeMs: 60_000 },
    { plan: long, sentMonotonicMs: 1_000_000, nowMonotonicMs: 1_000_001 },
  );
  expect(held.pausesUntilMonotonicMs).toBe(1_000_010);
});

test("a use of units that expired while the fetch was in flight is not refunded: the store has charged it", async () => {
  const sentMonotonicMs = performance.now() + 10_000;
  const sent = { plan, sentMonotonicMs, nowMonotonicMs: sentMonotonicMs + 1 };
  const held = busy();
  held.granted(held.nextFetch(0, sentMonotonicMs), { units: 100, kept: 0, lifeMs: 20 }, sent);
  const fetch = held.nextFetch(0, sentMonotonicMs + 18);
  held.sent(fetch);
  const { uses } = held;
  held.use(1);
  held.granted(fetch, { units: 50, kept: 0, lifeMs: 20 }, { ...sent, sentMonotonicMs: sentMonotonicMs + 18 });
  expect(held.units).toBe(50);
  const refund = async () => true;
  const check = { plan, key: held.key, cost: 1, live: -1 };
  const reply: ReplyFromHand = { nowMs: 0, verdicts: [], guarantee: "prefetched", uses: [uses] };
  expect(await refundUses({ refund }, reply, [check])).toBe(false);
  expect(held.units).toBe(50);
});

test("a key whose fetches are all sent ahead of need is remembered", () => {
  const held = busy();
  held.nextFetch(0, 9_000);
  expect(held.endsAtMs).toBe(19_000);
});
