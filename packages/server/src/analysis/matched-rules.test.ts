import { type Attributes, type Rule, ruleBook } from "sluice";
import { matcherOf } from "sluice/internal";
import { expect, test } from "vitest";
import { MatchedRules } from "./matched-rules.js";

const numbers = { algorithm: "fixed-window", limit: 1, window: "1s" } as const;
const rules = [
  { id: "all", key: [], ...numbers },
  { id: "ip", key: ["ip"], ...numbers },
  { id: "path", match: { path: ["/a/**", "/b"] }, key: ["ip"], ...numbers },
  { id: "post", match: { method: "POST", path: "/a/*" }, key: [], ...numbers },
  { id: "odd", match: { constructor: "acme" }, key: [], ...numbers },
] as unknown as Rule[];

function both(given: readonly Rule[]): (attributes: Attributes) => [readonly number[], readonly number[]] {
  const matched = new MatchedRules(matcherOf(ruleBook(given)), given.length);
  const { find } = matcherOf(ruleBook(given));
  return (attributes) => {
    const { entries, count } = find(attributes);
    return [matched.find(attributes), entries.slice(0, count)];
  };
}

test("cached results equal those of matching, whatever attributes a request has", () => {
  const find = both(rules);
  const seen = new Set<string>();
  for (let round = 0; round < 3; round++) {
    for (const ip of ["10.0.0.1", undefined, 7]) {
      for (const path of ["/a/x", "/a/x/y", "/b", "/c", undefined, 42, `/a/${"x".repeat(300)}`]) {
        for (const method of ["GET", "POST", undefined, true]) {
          for (const odd of [{}, { constructor: "acme" }, { constructor: "x" }]) {
            const [remembered, matched] = find({ ip, path, method, ...odd } as unknown as Attributes);
            expect(remembered).toEqual(matched);
            seen.add(matched.join());
          }
        }
      }
    }
  }
  expect(seen.size).toBeGreaterThanOrEqual(10);
});

test("without match conditions only presence decides; with many attributes nothing is cached", () => {
  const byKey = both([rules[0]!, rules[1]!]);
  for (const attributes of [{ ip: "1" }, {}, { ip: "2" }, { ip: 3 }]) {
    const [remembered, matched] = byKey(attributes);
    expect(remembered).toEqual(matched);
  }
  const many = ["a", "b", "c", "d", "e"].map((name) => ({ id: name, match: { [name]: "1" }, key: [], ...numbers }));
  const [remembered, matched] = both(many as unknown as Rule[])({ b: "1", e: "1", d: "2" });
  expect([remembered, matched]).toEqual([
    [1, 4],
    [1, 4],
  ]);
});

test("more values than the cache holds are still matched", () => {
  const find = both(rules);
  for (let i = 0; i < 40_000; i++) {
    const [remembered, matched] = find({ ip: "10.0.0.1", path: i % 2 === 0 ? `/a/${i}` : `/c/${i}` });
    if (remembered.join() !== matched.join()) throw new Error(`${i}: expected ${matched}, got ${remembered}`);
  }
  expect(find({ ip: "10.0.0.1", path: "/a/0" })[0]).toEqual([0, 1, 2]);
});
