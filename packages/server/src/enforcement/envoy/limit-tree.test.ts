import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseDomains } from "./descriptor-config.js";
import { counterOf, type Entry, type LimitTree, limitTree } from "./limit-tree.js";

function treeOf(text: string): LimitTree {
  const outcome = parseDomains(text);
  if ("mistakes" in outcome) throw new Error(outcome.mistakes.join("\n"));
  return limitTree(outcome.domains);
}
const limit = (name: string) => `rate_limit: { unit: day, requests_per_unit: 1, name: ${name} }`;
const entry = (key: string, value: string) => ({ key, value });

describe("a descriptor finds its limit", () => {
  const tree = treeOf(`
domain: d
descriptors:
  - key: k
    ${limit("bare")}
  - key: k
    value: "a*"
    ${limit("first")}
  - key: k
    value: "ab*"
    ${limit("second")}
  - key: k
    value: abc
    ${limit("exact")}
    descriptors:
      - key: user
        ${limit("below")}
  - key: empty
`);
  const nameOf = (...entries: ReturnType<typeof entry>[]) => tree.find("d", entries)?.placed.limit.name;

  test("the exact value first, then wildcards in file order, then the bare key", () => {
    expect(["abc", "abd", "b", ""].map((value) => nameOf(entry("k", value)))).toEqual([
      "exact",
      "first",
      "bare",
      "bare",
    ]);
  });

  test("at exactly the depth of its entries", () => {
    expect(nameOf(entry("k", "abc"), entry("user", "42"))).toBe("below");
    expect(nameOf(entry("k", "abc"), entry("user", "42"), entry("more", "1"))).toBeUndefined();
    expect(nameOf(entry("k", "b"), entry("user", "42"))).toBeUndefined();
    expect(nameOf()).toBeUndefined();
  });

  test("not at all in another domain, under another key, or where the file has no limit", () => {
    expect(tree.find("other", [entry("k", "abc")])).toBeUndefined();
    expect([nameOf(entry("x", "abc")), nameOf(entry("empty", ""))]).toEqual([undefined, undefined]);
    expect([tree.knows("d"), tree.knows("other")]).toEqual([true, false]);
  });

  test("a value that matched exactly does not fall back to a wildcard, even if only that has the next level", () => {
    const nested = treeOf(`
domain: d
descriptors:
  - { key: k, value: a, descriptors: [{ key: x, ${limit("deep")} }] }
  - { key: k, value: "*", descriptors: [{ key: y, ${limit("wild")} }] }
`);
    expect(nested.find("d", [entry("k", "a"), entry("y", "1")])).toBeUndefined();
    expect(nested.find("d", [entry("k", "b"), entry("y", "1")])?.placed.limit.name).toBe("wild");
  });
});

describe("counters", () => {
  test("each value counts by itself, except where the level shares its threshold", () => {
    const tree = treeOf(`
domain: d
descriptors:
  - { key: own, value: "a*", ${limit("own")} }
  - { key: shared, value: "a*", share_threshold: true, ${limit("shared")} }
  - { key: shared, value: "b*", share_threshold: true, ${limit("other")} }
`);
    const counter = (key: string, value: string) => tree.find("d", [entry(key, value)])!.counter;
    expect(counter("own", "a1")).not.toBe(counter("own", "a2"));
    expect(counter("shared", "a1")).toBe(counter("shared", "a2"));
    // The other limit counts under its own name.
    expect(tree.find("d", [entry("shared", "b1")])!.placed.limit.name).toBe("other");
  });

  test("a counter's name has only the values that the file leaves open; the rule id covers the rest", () => {
    const tree = treeOf(`
domain: d
descriptors:
  - { key: user, ${limit("one")} }
  - { key: plan, value: gold, ${limit("none")} }
  - key: plan
    value: free
    descriptors: [{ key: user, descriptors: [{ key: path, value: "/a*", ${limit("two")} }] }]
`);
    const counter = (...entries: Entry[]) => tree.find("d", entries)!.counter;
    expect(counter(entry("user", "ann"))).toBe("ann");
    expect(counter(entry("user", ""))).toBe("");
    expect(counter(entry("plan", "gold"))).toBe("*");
    const free = [entry("plan", "free"), entry("user", "ann"), entry("path", "/a*")] as const;
    expect(counter(...free)).toBe('["ann","/a*"]');
  });

  test("different lists of open values of a limit never share a counter, whatever characters they contain", () => {
    const tree = treeOf(`
domain: d
descriptors: [{ key: k, descriptors: [{ key: l, descriptors: [{ key: m, value: "*", ${limit("deep")} }] }] }]
`);
    const values = fc.tuple(fc.string(), fc.string(), fc.string());
    const counter = ([k, l, m]: readonly string[]) =>
      tree.find("d", [entry("k", k!), entry("l", l!), entry("m", m!)])!.counter;
    fc.assert(
      fc.property(values, values, (one, other) => {
        expect(counter(one) === counter(other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });

  test("different lists of entries never share a counter, whatever characters they contain", () => {
    const entries = fc.array(fc.record({ key: fc.string(), value: fc.string() }), { maxLength: 3 });
    fc.assert(
      fc.property(entries, entries, (one, other) => {
        expect(counterOf("d", one) === counterOf("d", other)).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });
});
