import { expect, test } from "vitest";
import { type ConcurrencyState, concurrency } from "../../algorithms/concurrency.js";
import type { Check } from "../../check.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { CounterMap } from "./counter-map.js";
import { MemoryLeases } from "./memory-leases.js";

const NOW_MS = 1_000_000;
const TTL_MS = 10_000;
const book = compileRuleBook(
  ["a", "b"].map((id) => ({ id, key: [], algorithm: "concurrency" as const, limit: 2, ttl: `${TTL_MS}ms` })),
  1,
);

/** A lease with a place under each of two rules. */
function held() {
  const states = new CounterMap(1e6);
  const take = ({ key, plan }: Check) => {
    const state = concurrency.fresh();
    const policy = plan.policy as Parameters<typeof concurrency.charge>[1];
    const verdict = concurrency.look(state, policy, 1, NOW_MS);
    concurrency.charge(state, policy, { cost: 1, nowMs: NOW_MS, requestId: "lease" }, verdict);
    states.set(key, state, NOW_MS);
    return { key, entryId: "lease", places: 1, ttlMs: TTL_MS };
  };
  const places = book.checks({}, 1).map(take);
  const left = () =>
    book.checks({}, 1).map(({ key, plan }) => {
      const policy = plan.policy as Parameters<typeof concurrency.look>[1];
      return concurrency.look(states.get(key) as ConcurrencyState, policy, 1, NOW_MS).remaining;
    });
  return { leases: new MemoryLeases(states), places, left };
}

test("a lease is released once, from all its counters", () => {
  const { leases, places, left } = held();
  expect(left()).toEqual([1, 1]);
  expect(leases.release({ places }, NOW_MS)).toBe(true);
  expect(left()).toEqual([2, 2]);
  expect(leases.release({ places }, NOW_MS)).toBe(false);
});

test("a renewed lease is held for its shortest term", () => {
  const { leases, places } = held();
  expect(leases.renew({ places }, NOW_MS + TTL_MS - 1)).toBe(TTL_MS);
  expect(leases.renew({ places }, NOW_MS + 2 * TTL_MS - 2)).toBe(TTL_MS);
});

test("a lease that lost one of its places gives up the others", () => {
  const { leases, places, left } = held();
  leases.release({ places: [places[1]!] }, NOW_MS);
  expect(leases.renew({ places }, NOW_MS)).toBe(0);
  expect(left()).toEqual([2, 2]);
});
