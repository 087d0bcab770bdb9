import { expect, test } from "vitest";
import { type State, verdict } from "../../algorithms/model.js";
import { models } from "../../algorithms/models.js";
import type { Check } from "../../check.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { heldCounters } from "../reserved.js";
import { MemoryHolds } from "./memory-holds.js";

const book = compileRuleBook(
  [
    {
      id: "tokens",
      key: ["org"],
      algorithm: "token-bucket",
      limit: 50,
      window: "1m",
      cost: { attribute: "t" },
      estimate: { default: 10 },
    },
  ],
  1,
);

function open(holds: MemoryHolds, entryId: string, nowMs: number) {
  const checks: Check[] = book.checks({ org: "a" }, undefined).map((check) => ({ ...check, cost: 10 }));
  const request = { checks, charge: true, entryId, id: undefined, fingerprint: "", rulesVersion: 1, holdMs: 1_000 };
  holds.open(request, [{ ...verdict(true, 40, 0, 0, undefined), charged: true }], { atMs: nowMs, nowMs });
  return { ttlMs: 1_000, counters: heldCounters(checks, () => entryId) };
}

function holdsWith(maxBytes: number): { holds: MemoryHolds; state: State } {
  const state = models["token-bucket"].fresh();
  const counters = {
    state: () => state,
    charge: (
      ...[{ policy }, charge, found, charged]: Parameters<ConstructorParameters<typeof MemoryHolds>[0]["charge"]>
    ) => models[policy.stored].charge(charged, policy, charge, found),
  };
  return { holds: new MemoryHolds(counters, maxBytes), state };
}

test("a reservation is settled once, and its answer stays the same for a minute after its end", () => {
  const { holds } = holdsWith(10_000);
  const reserved = open(holds, "e", 0);
  const settled = { isNew: false, isOwn: false, counters: [{ state: "settled", held: 10, charged: 4 }] };
  const settle = (units: number, name: string, nowMs: number) =>
    holds.settle(reserved, new Map([["t", units]]), { name, nowMs });
  expect(settle(4, "first", 10)).toEqual({ ...settled, isNew: true, isOwn: true });
  expect(settle(9, "other", 60_999)).toEqual(settled);
  // If it is repeated, the sender learns that it is the one that counted.
  expect(settle(9, "first", 60_999)).toEqual({ ...settled, isOwn: true });
  expect(holds.stateOf(reserved, 61_000)).toBe("unknown");
});

test("one that nobody settled expires: what it held stands", () => {
  const { holds } = holdsWith(10_000);
  const reserved = open(holds, "e", 0);
  expect(holds.stateOf(reserved, 999)).toBe("open");
  expect(holds.settle(reserved, new Map([["t", 4]]), { name: "late", nowMs: 1_000 })).toEqual({
    isNew: false,
    isOwn: false,
    counters: [{ state: "expired", held: 10, charged: 10 }],
  });
  expect(holds.extend(reserved, new Map([["t", 40]]), { atMs: 1_000, nowMs: 1_000 }).state).toBe("expired");
});

test("an extension renews the term", () => {
  const { holds } = holdsWith(10_000);
  const reserved = open(holds, "e", 0);
  expect(holds.extend(reserved, new Map([["t", 12]]), { atMs: 900, nowMs: 900 })).toMatchObject({
    state: "open",
    held: [12],
  });
  expect(holds.stateOf(reserved, 1_899)).toBe("open");
  expect(holds.stateOf(reserved, 1_900)).toBe("expired");
});

test("a flood of reservations takes bounded memory: some of them are evicted", () => {
  const { holds } = holdsWith(10_000);
  for (let i = 0; i < 1_000; i++) open(holds, `e${i}`, i);
  expect(holds.bytes).toBeLessThanOrEqual(10_000);
  expect(holds.count + holds.evicted).toBe(1_000);
  holds.sweep(1_000, 10 ** 9);
  expect(holds.count).toBe(0);
});
