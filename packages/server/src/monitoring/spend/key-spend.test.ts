/** With a real limiter: what a reservation holds is not spent yet, what is settled is. */
import { createLimiter, type Rule, readCounterKey } from "sluice";
import { virtualClock } from "sluice/testing";
import { expect, test } from "vitest";
import { KeySpend } from "./key-spend.js";

const tokens: Rule = {
  id: "tokens",
  key: ["org"],
  algorithm: "token-bucket",
  limit: 100_000,
  window: "1m",
  unit: "tokens",
  cost: { attribute: "used" },
  estimate: { default: 500, ttl: "1m" },
};
const download: Rule = {
  id: "download",
  key: ["org"],
  algorithm: "token-bucket",
  limit: 1_000_000,
  window: "1m",
  unit: "bytes",
  cost: { attribute: "size" },
};
const plain: Rule = { id: "plain", key: ["org"], algorithm: "gcra", limit: 1_000, window: "1s" };

function watched(rules: Rule[]) {
  const limiter = createLimiter({ rules, clock: virtualClock() });
  const spend = new KeySpend(limiter);
  spend.watch(limiter);
  limiter.on("decision", (decision, request) => spend.add(decision, request));
  const read = () =>
    Object.entries(spend.quarter()).map(([unit, { items }]) => [
      unit,
      items.map(({ key, count }) => [readCounterKey(key).attributes?.org, count]),
    ]);
  return { limiter, spend, read };
}

test("a known cost is spent at once; an estimate when it is settled, at the real cost", async () => {
  const { limiter, spend, read } = watched([tokens, download, plain]);
  const decision = await limiter.check({ org: "acme", size: 2_000 });
  expect(decision.reservation!.held).toEqual({ tokens: 500 });
  expect(read()).toEqual([["bytes", [["acme", 2_000]]]]);
  await limiter.settle(decision.reservation!.id, { used: 120 });
  await limiter.settle(decision.reservation!.id, { used: 120 });
  await limiter.check({ org: "bob", size: 1, used: 30 });
  expect(read()).toEqual([
    [
      "bytes",
      [
        ["acme", 2_000],
        ["bob", 1],
      ],
    ],
    [
      "tokens",
      [
        ["acme", 120],
        ["bob", 30],
      ],
    ],
  ]);
  expect([...spend.byRule()]).toEqual([
    ["download", 2_001],
    ["tokens", 150],
  ]);
});

test("what is refused or cancelled is not spent", async () => {
  const { limiter, read } = watched([{ ...download, limit: 10 }, tokens]);
  expect((await limiter.check({ org: "acme", size: 11, used: 1 })).allowed).toBe(false);
  const { reservation } = await limiter.check({ org: "acme", size: 4 });
  await limiter.cancel(reservation!.id);
  expect(read()).toEqual([["bytes", [["acme", 4]]]]);
});

test("ten thousand keys fit a bounded table, and the largest are found", async () => {
  const { limiter, spend } = watched([download]);
  for (let i = 0; i < 10_000; i++) await limiter.check({ org: `o${i}`, size: 1 });
  for (let i = 0; i < 20; i++) await limiter.check({ org: "large", size: 1_000 });
  const { items } = spend.quarter().bytes!;
  expect(items.length).toBeLessThanOrEqual(200);
  const [first] = items;
  expect(readCounterKey(first!.key).attributes).toEqual({ org: "large" });
  expect(first!.count).toBeLessThanOrEqual(20_000);
  expect(first!.count + first!.error).toBeGreaterThanOrEqual(20_000);
});

test("a rule that was deleted, or lost its unit, is not counted", async () => {
  const { limiter, spend, read } = watched([download]);
  await limiter.check({ org: "acme", size: 5 });
  const { unit: _, ...without } = download;
  limiter.setRules([without as Rule]);
  await limiter.check({ org: "acme", size: 5 });
  limiter.setRules([plain]);
  await limiter.check({ org: "acme" });
  expect(read()).toEqual([["bytes", [["acme", 5]]]]);
  expect([...spend.byRule()]).toEqual([]);
});

test("a rule may be named like an inherited object property", async () => {
  const { limiter, read } = watched([tokens, { ...download, id: "constructor" }]);
  await limiter.check({ org: "acme", size: 2_000 });
  expect(read()).toEqual([["bytes", [["acme", 2_000]]]]);
});
