import fc from "fast-check";
import { expect, test } from "vitest";
import { compileGlob, isLiteral, LONGEST_PATTERN, matchesGlob } from "./glob.js";

const matches = (pattern: string, value: string): boolean => matchesGlob(compileGlob(pattern), value);

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

test("a glob matches what its translation into a regular expression matches", () => {
  const character = fc.constantFrom("a", "b", "/", "*");
  const pattern = fc.string({ unit: character, maxLength: 10 });
  const value = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 12 });
  fc.assert(
    fc.property(pattern, value, (pattern, value) => matches(pattern, value) === regExpOf(pattern).test(value)),
    { numRuns: 5000 },
  );
});

function regExpOf(pattern: string): RegExp {
  const source = pattern.replace(/\*{3,}/g, "**").replace(/(?<=^|\/)\*\*\/|\*\*|\*/g, (wildcard) => {
    if (wildcard === "*") return "[^/]*";
    return wildcard === "**" ? ".*" : "(?:.*/)?";
  });
  return new RegExp(`^${source}$`);
}

test("the worst pattern on a long value costs no more than their lengths multiplied", () => {
  const glob = compileGlob("**a*".repeat(LONGEST_PATTERN / 4 - 1).concat("b"));
  const startedMs = performance.now();
  expect(matchesGlob(glob, "a".repeat(8000))).toBe(false);
  // 8000 * 256 steps are some milliseconds; backtracking would take years.
  expect(performance.now() - startedMs).toBeLessThan(1000);
});

test("a pattern beyond the bound is not compiled", () => {
  expect(() => compileGlob("*".repeat(LONGEST_PATTERN + 1))).toThrow(RangeError);
});
