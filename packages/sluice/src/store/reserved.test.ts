import { expect, test } from "vitest";
import { compileRuleBook } from "../rules/rule-book.js";
import { type HeldCounter, heldCounters, holdDigest } from "./reserved.js";

const book = compileRuleBook(
  [
    { id: "requests", key: ["org"], algorithm: "fixed-window", limit: 5, window: "1m" },
    {
      id: "tokens",
      key: ["org"],
      algorithm: "fixed-window",
      limit: 50,
      window: "day",
      align: "calendar",
      cost: { attribute: "t" },
      estimate: { default: 10 },
    },
  ],
  1,
);

test("only checks with an estimate hold units, and only if the request does not declare its cost", () => {
  const [counter, ...others] = heldCounters(book.checks({ org: "a" }, undefined), () => "e");
  expect(others).toEqual([]);
  expect(counter).toMatchObject({ entryId: "e", rule: "tokens", key: "{org=a}:tokens:f", cost: "t", finishes: true });
  expect(heldCounters(book.checks({ org: "a", t: 3 }, undefined), () => "e")).toEqual([]);
  expect(heldCounters(book.checks({ org: "a" }, 0), () => "e")).toEqual([]);
});

test("the digest covers every field of a counter except its name, and is the same for a copy", () => {
  const [counter] = heldCounters(book.checks({ org: "a" }, undefined), () => "e") as [HeldCounter];
  const digest = holdDigest({ ttlMs: 1, counters: [counter] });
  expect(holdDigest(JSON.parse(JSON.stringify({ ttlMs: 1, counters: [counter] })))).toBe(digest);
  const others: Partial<HeldCounter>[] = [
    { rule: "x" },
    { mode: "shadow" },
    { key: "{org=b}:tokens:f" },
    { policy: { ...counter.policy, limit: 51 } },
    { policy: { ...counter.policy, calendar: { unit: "day", timezone: "Asia/Tokyo" } } as HeldCounter["policy"] },
    { cost: "u" },
    { finishes: false },
    { keyClass: "x" },
  ];
  const digests = others.map((changed) => holdDigest({ ttlMs: 1, counters: [{ ...counter, ...changed }] }));
  expect(new Set([digest, holdDigest({ ttlMs: 2, counters: [counter] }), ...digests]).size).toBe(others.length + 2);
});
