import fc from "fast-check";
import { expect, test } from "vitest";
import { EntryList } from "./entry-list.js";
import { globTokens, isLiteral, LONGEST_PATTERN } from "./glob.js";
import { GlobTree } from "./glob-tree.js";

function treeOf(patterns: readonly string[]): GlobTree {
  const tree = new GlobTree();
  for (const [i, pattern] of patterns.entries()) tree.add(pattern, i);
  return tree;
}

function find(tree: GlobTree, value: string, budget = { steps: 10_000_000 }): number[] {
  const found = new EntryList();
  if (!tree.find(value, found, budget)) throw new Error("the budget did not suffice");
  return found.entries.slice(0, found.count);
}

const matches = (pattern: string, value: string): boolean => find(treeOf([pattern]), value).includes(0);

test.each([
  ["/v1/**", "/v1/", true],
  ["/v1/**", "/v1/users/42", true],
  ["/v1/**", "/v1", false],
  ["/v1/**", "/v10/x", false],
  ["/v1/*", "/v1/users", true],
  ["/v1/*", "/v1/users/42", false],
  ["/v1/*/posts", "/v1/42/posts", true],
  ["/v1/*/posts", "/v1/4/2/posts", false],
  ["/v1/**/posts", "/v1/4/2/posts", true],
  ["/v1/**/posts", "/v1/posts", true],
  ["/v1/**/posts", "/v1/x-posts", false],
  ["**/posts", "posts", true],
  ["**/posts", "/a/posts", true],
  ["/a**z", "/a/b/z", true],
  ["acme-*", "acme-eu", true],
  ["acme-*", "acme-", true],
  ["*.example.com", "api.example.com", true],
  ["a.c", "abc", false],
  ["a[b]*", "a[b]c", true],
  ["***", "a/b", true],
  ["", "", true],
  ["", "a", false],
])("%s against %s: %s", (pattern, value, expected) => {
  expect(matches(pattern, value)).toBe(expected);
});

test("only a pattern without a star is literal", () => {
  expect(isLiteral("/v1/users")).toBe(true);
  expect(isLiteral("/v1/*")).toBe(false);
});

test("globs in one tree match what their translations into regular expressions match, one by one", () => {
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", "/", "*", "**/"), maxLength: 10 });
  const patterns = fc.uniqueArray(pattern, { minLength: 1, maxLength: 12 });
  const value = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 12 });
  const seed = Date.now() % 2 ** 31;
  console.info(`globs against regular expressions: seed ${seed}`);
  fc.assert(
    fc.property(patterns, fc.array(value, { minLength: 1, maxLength: 4 }), (patterns, values) => {
      const tree = treeOf(patterns);
      // Returned rather than passed to `expect`, which costs more than the rest.
      return values.every((value) => {
        const found = new Set(find(tree, value));
        return patterns.every((pattern, i) => found.has(i) === regExpOf(pattern).test(value));
      });
    }),
    { seed, numRuns: 2000 },
  );
});

function regExpOf(pattern: string): RegExp {
  const source = pattern.replace(/\*{3,}/g, "**").replace(/(?<=^|\/)\*\*\/|\*\*|\*/g, (wildcard) => {
    if (wildcard === "*") return "[^/]*";
    return wildcard === "**" ? ".*" : "(?:.*/)?";
  });
  return new RegExp(`^${source}$`, "s");
}

test("a value of any characters, including surrogates and line ends, is matched as text", () => {
  const unit = fc.constantFrom("\n", "\u2028", "😀", "\ud800", "é", "\0", "/", "x");
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 8 }), fc.string({ unit, maxLength: 8 }), (before, after) => {
      expect(matches(`${before}*${after}`, `${before}x${after}`)).toBe(true);
      expect(matches(`${before}**${after}`, `${before}/\n/${after}`)).toBe(true);
    }),
  );
});

const stepsOf = (patterns: readonly string[], value: string): number => {
  const budget = { steps: 10_000_000 };
  find(treeOf(patterns), value, budget);
  return 10_000_000 - budget.steps;
};

test("many globs with the same beginning cost about as many steps as one", () => {
  const value = `/v1/${"x".repeat(1_000)}/items`;
  const one = stepsOf(["/v1/*/items7/*"], value);
  const many = stepsOf(
    Array.from({ length: 1_000 }, (_, i) => `/v1/*/items${i}/*`),
    value,
  );
  expect(one).toBeGreaterThan(1_000);
  expect(many).toBeLessThan(one * 1.1);
});

test("the worst pattern takes at most one step for each of its characters and each of the value's", () => {
  const pattern = "**a*".repeat(LONGEST_PATTERN / 4 - 1).concat("b");
  expect(stepsOf([pattern], "a".repeat(8_000))).toBeLessThan(LONGEST_PATTERN * 8_001);
});

test("a search that exceeds its budget ends undecided, soon after the budget is used up", () => {
  const tree = new GlobTree();
  for (let i = 0; i < 500; i++) tree.add(`**${i}**x`, i);
  const value = Array.from({ length: 500 }, (_, i) => i).join("-");
  const budget = { steps: 20_000 };
  expect(tree.find(value, new EntryList(), budget)).toBe(false);
  expect(budget.steps).toBeGreaterThan(-2_000);
});

test("a pattern beyond the bound is not compiled", () => {
  expect(() => globTokens("*".repeat(LONGEST_PATTERN + 1))).toThrow(RangeError);
});
