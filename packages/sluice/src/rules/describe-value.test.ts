import { expect, test } from "vitest";
import { describeValue } from "./describe-value.js";

test.each([
  [undefined, "nothing"],
  [null, "null"],
  [Number.NaN, "NaN"],
  [10n, "10n"],
  [Symbol("x"), "a symbol"],
  [() => 1, "a function"],
  ['a "b"', '"a \\"b\\""'],
  [{ a: [1, { b: undefined }] }, '{"a":[1,{}]}'],
])("%s", (value, shown) => {
  expect(describeValue(value)).toBe(shown);
});

test("a long value is truncated, and ends with a mark", () => {
  for (const value of ["x".repeat(1_000_000), Array.from({ length: 1_000_000 }, (_, i) => i), { a: "y".repeat(500) }]) {
    const shown = describeValue(value);
    expect(shown).toHaveLength(80);
    expect(shown.endsWith("…")).toBe(true);
  }
});

test("no value makes it throw: cycles, depth, hostile getters", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  let deep: unknown = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  const hostile = {
    get trap(): never {
      throw new Error("no");
    },
  };
  expect(describeValue(cycle)).toMatch(/^\{"self":/);
  expect(describeValue(deep).length).toBeLessThanOrEqual(80);
  expect(describeValue(hostile)).toBe("a value that JSON cannot show");
});
