import { expect, test } from "vitest";
import type { Rule } from "../../rules/rule.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import type { StoreRequest } from "../store.js";
import { CounterMap } from "./counter-map.js";
import { MemoryBlocks } from "./memory-blocks.js";
import { MemoryCounters } from "./memory-counters.js";
import { MemoryDecider } from "./memory-decider.js";
import { MemoryTurns } from "./memory-turns.js";

const NOW_MS = 1_000_000;
const narrow: Rule = { id: "narrow", key: [], algorithm: "fixed-window", limit: 1, window: "1h" };
const wide: Rule = { id: "wide", key: [], algorithm: "token-bucket", limit: 5, window: "1h" };

function decider(rules: readonly Rule[]) {
  const states = new CounterMap(1e6);
  const counters = new MemoryCounters(states, () => undefined);
  const endOf = (key: string) => states.get(key)!.endsAtMs;
  const decides = new MemoryDecider({ counters, blocks: new MemoryBlocks(states), turns: new MemoryTurns(states) });
  const book = compileRuleBook(rules, 1);
  const decide = (more: Partial<StoreRequest> = {}) => {
    const request = {
      checks: book.checks({}, 1),
      charge: true,
      entryId: "a",
      id: undefined,
      fingerprint: "",
      rulesVersion: 1,
    };
    const verdicts = decides.decide({ ...request, ...more }, NOW_MS);
    return { isRefused: decides.isRefused, remaining: verdicts.map(({ remaining }) => remaining) };
  };
  return { decide, book, endOf };
}

test("all checks are charged, or none", () => {
  const { decide } = decider([narrow, wide]);
  expect(decide()).toEqual({ isRefused: false, remaining: [0, 4] });
  expect(decide()).toEqual({ isRefused: true, remaining: [0, 4] });
  expect(decide()).toEqual({ isRefused: true, remaining: [0, 4] });
});

test("a block is stored beside its counter: a counter refused because of it expires by its own numbers, as in Redis", () => {
  const { decide, book, endOf } = decider([{ ...narrow, window: "1s", blockFor: "1h" }]);
  for (let i = 0; i < 3; i++) decide();
  expect(endOf(book.checks({}, 1)[0]!.key)).toBeLessThanOrEqual(NOW_MS + 1_000);
});

test("a look charges nothing", () => {
  const { decide } = decider([narrow, wide]);
  for (let i = 0; i < 3; i++) expect(decide({ charge: false })).toEqual({ isRefused: false, remaining: [1, 5] });
});

test("a rule in shadow mode refuses nobody, and is charged with the others", () => {
  const { decide } = decider([{ ...narrow, mode: "shadow" }, wide]);
  decide();
  expect(decide()).toEqual({ isRefused: false, remaining: [0, 3] });
});

test("a candidate is charged if only its live check refuses, as if it had replaced it", () => {
  const { decide } = decider([{ ...narrow, candidate: { limit: 3 } }]);
  expect(decide().remaining).toEqual([0, 2]);
  expect(decide()).toEqual({ isRefused: true, remaining: [0, 1] });
});

test("a charge is made before any look, and counts whatever the others answer", () => {
  const { decide, book } = decider([narrow, wide]);
  const [first, second] = book.checks({}, 1);
  decide();
  const checks = [first!, { ...second!, charge: true as const, cost: 3 }];
  expect(decide({ checks })).toEqual({ isRefused: true, remaining: [0, 1] });
});
