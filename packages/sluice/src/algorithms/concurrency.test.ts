import { expect, test } from "vitest";
import { type ConcurrencyState, concurrency } from "./concurrency.js";
import type { Verdict } from "./model.js";
import type { ConcurrencyPolicy } from "./policy.js";

const policy: ConcurrencyPolicy = { stored: "concurrency", limit: 3, ttlMs: 100 };

function take(state: ConcurrencyState, requestId: string, nowMs: number, cost = 1): Verdict {
  const found = concurrency.look(state, policy, cost, nowMs);
  if (found.allowed) concurrency.charge(state, policy, { cost, nowMs, requestId }, found);
  return found;
}

const free = (state: ConcurrencyState, nowMs: number): number => concurrency.look(state, policy, 0, nowMs).remaining;

test("places are held until released or until their lease ends", () => {
  const state = concurrency.fresh();
  take(state, "a", 0);
  take(state, "b", 40, 2);
  expect(take(state, "c", 50)).toMatchObject({ allowed: false, reason: "concurrency", retryAfterMs: 50 });
  expect(concurrency.release(state, { entryId: "b", ttlMs: 100 }, 60)).toBe(true);
  expect([free(state, 60), free(state, 99), free(state, 100)]).toEqual([2, 2, 3]);
});

test("the wait is until enough leases have ended for the cost", () => {
  const state = concurrency.fresh();
  for (const [i, id] of ["a", "b", "c"].entries()) take(state, id, 10 * i);
  const waits = [1, 2, 3].map((cost) => concurrency.look(state, policy, cost, 30).retryAfterMs);
  expect(waits).toEqual([70, 80, 90]);
});

test("a release under another term matches no lease", () => {
  const state = concurrency.fresh();
  take(state, "a", 0);
  expect(concurrency.release(state, { entryId: "a", ttlMs: 101 }, 10)).toBe(false);
  expect(free(state, 10)).toBe(2);
});

test("a renewal counts from now; renewing an expired lease, or more places than it holds, fails", () => {
  const state = concurrency.fresh();
  take(state, "a", 0);
  expect(concurrency.renew(state, { entryId: "a", ttlMs: 100, places: 2 }, 50)).toBe(false);
  expect(concurrency.renew(state, { entryId: "a", ttlMs: 100, places: 1 }, 50)).toBe(true);
  expect([free(state, 149), free(state, 150)]).toEqual([2, 3]);
  expect(concurrency.renew(state, { entryId: "a", ttlMs: 100, places: 1 }, 150)).toBe(false);
});

test("places given back without a name are those of the oldest leases", () => {
  const state = concurrency.fresh();
  take(state, "old", 0, 2);
  take(state, "new", 50);
  expect(concurrency.giveBack(state, policy, { cost: 2, nowMs: 60 })).toBe(true);
  expect(free(state, 120)).toBe(2);
  expect(concurrency.giveBack(state, policy, { cost: 1, nowMs: 150 })).toBe(false);
});

test("a lease granted by a clock that was ahead counts as taken when the clock is back", () => {
  const state = concurrency.fresh();
  take(state, "a", 10_000);
  expect(free(state, 0)).toBe(2);
  expect([free(state, 99), free(state, 100)]).toEqual([2, 3]);
});

test("a cost above the limit can never pass, and a look at cost 0 always does", () => {
  const state = concurrency.fresh();
  expect(concurrency.look(state, policy, 4, 0)).toMatchObject({ allowed: false, reason: "cost-exceeds-limit" });
  take(state, "a", 0, 3);
  expect(concurrency.look(state, policy, 0, 0)).toMatchObject({ allowed: true, remaining: 0 });
  expect(concurrency.describe(state)).toEqual({ count: 3, latestEndMs: 100 });
});
