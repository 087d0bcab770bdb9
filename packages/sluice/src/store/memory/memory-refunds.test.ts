import { expect, test } from "vitest";
import { models } from "../../algorithms/models.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { CounterMap } from "./counter-map.js";
import { MemoryCounters } from "./memory-counters.js";
import { MemoryRefunds } from "./memory-refunds.js";
import { MemoryTurns } from "./memory-turns.js";

const NOW_MS = 1_000_000;
const [check] = compileRuleBook([{ id: "r", key: [], algorithm: "rolling-window", limit: 5, window: "1m" }], 1).checks(
  {},
  2,
);
const { policy } = check!.plan;
const model = models[policy.stored];

function charged() {
  const states = new CounterMap(1e6);
  const counters = new MemoryCounters(states, () => undefined);
  const state = model.fresh();
  counters.charge(check!, { cost: 2, nowMs: NOW_MS, requestId: "a" }, model.look(state, policy, 2, NOW_MS), state);
  const left = (nowMs = NOW_MS) =>
    model.look(counters.state(check!.key, nowMs) ?? model.fresh(), policy, 0, nowMs).remaining;
  return { refunds: new MemoryRefunds(counters, new MemoryTurns(states)), left };
}

const charge = { check: check!, atMs: NOW_MS, entryId: "a", owed: 0 };

test("a charge is given back", () => {
  const { refunds, left } = charged();
  expect(left()).toBe(3);
  refunds.refund([charge], NOW_MS);
  expect(left()).toBe(5);
});

test("nothing is given back to an expired counter, and none is created", () => {
  const { refunds, left } = charged();
  const laterMs = NOW_MS + 120_000;
  refunds.refund([charge], laterMs);
  expect(refunds.giveBack([check!], laterMs)).toBe(false);
  expect(left(laterMs)).toBe(5);
});

test("units are given back whoever was charged, never more than there were, and a cost of 0 gives nothing", () => {
  const { refunds, left } = charged();
  expect(refunds.giveBack([{ ...check!, cost: 0 }], NOW_MS)).toBe(false);
  expect(refunds.giveBack([{ ...check!, cost: 100 }], NOW_MS)).toBe(true);
  expect(left()).toBe(5);
});
