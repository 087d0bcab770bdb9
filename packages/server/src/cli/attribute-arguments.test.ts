import { expect, test } from "vitest";
import { parseAttributes } from "./attribute-arguments.js";

test("names and values, whatever they are called", () => {
  expect(parseAttributes(["user=42", "path=/v1/x?a=b", "empty="])).toEqual({
    user: "42",
    path: "/v1/x?a=b",
    empty: "",
  });
  expect(JSON.stringify(parseAttributes(["__proto__=1", "constructor=2"]))).toBe('{"__proto__":"1","constructor":"2"}');
});

test.each(["user", "=42", ""])("%j is no attribute", (pair) => {
  expect(() => parseAttributes([pair])).toThrow(`expected attributes such as user=42, got ${JSON.stringify(pair)}`);
});

test("a name that comes twice is refused: one value would be dropped", () => {
  expect(() => parseAttributes(["user=1", "path=/", "user=2"])).toThrow('user: expected one value, got "1" and "2"');
  expect(() => parseAttributes(["user=", "user=2"])).toThrow('user: expected one value, got "" and "2"');
});
