import fc from "fast-check";
import { expect, test } from "vitest";
import { wildcardOf } from "./wildcard.js";

test.each([
  ["foo*", "foo", true],
  ["foo*", "foobar", true],
  ["foo*", "fo", false],
  ["*foo", "a foo", true],
  ["*foo", "foo a", false],
  ["f*b*r", "fooXbar", true],
  ["f*b*r", "fooXbarr", true],
  ["f*b*r", "fooXba", false],
  ["*", "", true],
  ["**", "x", true],
  ["a*a", "a", false],
  ["ab*ba", "aba", false],
  ["*ab*b", "ab", false],
  ["a.c*", "abc", false],
])("%s on %s: %s", (pattern, value, fits) => {
  expect(wildcardOf(pattern)(value)).toBe(fits);
});

test("a wildcard matches the same values as the equivalent regular expression", () => {
  const letters = (alphabet: string) => fc.string({ unit: fc.constantFrom(...alphabet), maxLength: 8 });
  fc.assert(
    fc.property(letters("ab*"), letters("ab"), (pattern, value) => {
      fc.pre(pattern.includes("*"));
      expect(wildcardOf(pattern)(value)).toBe(new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(value));
    }),
    { numRuns: 1_000 },
  );
});

/** Counts the operations on the value. */
function counted(value: string): { value: string; steps: () => number } {
  let steps = 0;
  const proxy = new Proxy(Object(value) as object, {
    get(target, name) {
      steps++;
      const found = Reflect.get(target, name, value) as unknown;
      return typeof found === "function" ? found.bind(value) : found;
    },
  });
  return { value: proxy as unknown as string, steps: () => steps };
}

test("a long value is searched once per part of the pattern, and not at all if prefix or suffix differ", () => {
  const long = "a".repeat(50_000);
  const hostile = counted(long);
  expect(wildcardOf(`${"*a".repeat(50)}*b*`)(hostile.value)).toBe(false);
  expect(hostile.steps()).toBeLessThanOrEqual(60);
  const otherEnd = counted(long);
  expect(wildcardOf("*7*x")(otherEnd.value)).toBe(false);
  expect(otherEnd.steps()).toBeLessThanOrEqual(3);
});
