import { describe, expect, test } from "vitest";
import { parseNginx } from "./nginx-directives.js";

describe("the grammar", () => {
  test("words, quotes, comments, variables in braces, blocks", () => {
    const variable = `p${"$"}{v}q`;
    expect(parseNginx(`a "x; y" 'z' ${variable}; # c {\nb { c d\\ e; }`)).toEqual([
      { name: "a", args: ["x; y", "z", variable], line: 1 },
      { name: "b", args: [], line: 2, block: [{ name: "c", args: ["d e"], line: 2 }] },
    ]);
  });

  test.each([["a {"], ["}"], ['a "x;'], ["a b"], [`a ${"$"}{v;`], ["x{".repeat(100)]])(
    "%s is refused in words",
    (text) => {
      expect(() => parseNginx(text)).toThrow(/line|end/);
    },
  );

  test("a long hostile file is read in a single pass", () => {
    expect(parseNginx(`a ${'"'.repeat(200_000)};`)).toHaveLength(1);
    expect(() => parseNginx("a ".repeat(200_000))).toThrow();
  });
});
