import { expect, test } from "vitest";
import { verdict } from "../../algorithms/model.js";
import { compileRuleBook } from "../../rules/rule-book.js";
import { CounterMap } from "./counter-map.js";
import { MemoryBlocks } from "./memory-blocks.js";

const book = compileRuleBook(
  [{ id: "r", key: ["user"], algorithm: "fixed-window", limit: 1, window: "1s", blockFor: "1m" }],
  1,
);
const checkOf = (user: string) => book.checks({ user }, 1)[0]!;
const refused = () => verdict(false, 0, 10, 10, "limit");

test("blocks are listed until they end, and are evicted after idle counters", () => {
  const states = new CounterMap(3_000);
  const blocks = new MemoryBlocks(states);
  blocks.apply(checkOf("ann"), refused(), true, 0);
  blocks.put(checkOf("bob").block!.key, 5_000, 0);
  expect(blocks.list(1_000)).toEqual([
    { key: "{user=ann}:r:x", leftMs: 59_000 },
    { key: "{user=bob}:r:x", leftMs: 4_000 },
  ]);
  // Others' idle counters come and go.
  for (let i = 0; i < 100; i++) states.set(`idle-${i}`, { endsAtMs: 9_000, bytes: 0, isUsedUp: false, bornMs: 0 }, 1);
  expect(states.evictedIdle).toBeGreaterThan(0);
  expect(blocks.list(5_000)).toEqual([{ key: "{user=ann}:r:x", leftMs: 55_000 }]);
  expect(blocks.list(60_000)).toEqual([]);
});

test("a look begins no block, and reports the wait that a check would get", () => {
  const blocks = new MemoryBlocks(new CounterMap(10_000));
  const found = refused();
  blocks.apply(checkOf("ann"), found, false, 0);
  expect(found).toMatchObject({ reason: "limit", retryAfterMs: 60_000 });
  expect(blocks.list(0)).toEqual([]);
});
