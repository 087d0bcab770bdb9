/** The parser behind the architecture tests: it must see every form in use, and nothing in comments or strings. */
import { expect, test } from "vitest";
import { readSource } from "../scripts/read-source.mjs";

test("imports of every form are found with their names, and none in comments or strings", () => {
  const source = [
    'import { a, type B } from "./values.js";',
    'import type { C } from "./types.js";',
    'import { type D, type E } from "./inline-types.js";',
    'import * as all from "./all.js";',
    'import "./effect.js";',
    'import {\n  long as short,\n  list,\n} from "./list.js";',
    'export { f } from "./again.js";',
    'export type { G } from "./again-types.js";',
    'const { late, other: renamed } = await import("./late.js");',
    'const one = (await import("./member.js")).one;',
    'const whole = await import("./whole.js");',
    'type H = import("./type-expression.js").H;',
    '/** import { example } from "sluice"; */',
    '// await import("./never.js")',
    'export const from = "./not-an-import.js";',
  ].join("\n");
  const imports = readSource("source.ts", source).imports;
  expect(imports.map(({ from, typesOnly, names }) => `${typesOnly ? "types " : ""}${from} ${names}`)).toEqual([
    "./values.js a,B",
    "types ./types.js C",
    "types ./inline-types.js D,E",
    "./all.js *",
    "./effect.js ",
    "./list.js long,list",
    "./again.js f",
    "types ./again-types.js G",
    "./late.js late,other",
    "./member.js one",
    "./whole.js *",
    "types ./type-expression.js H",
  ]);
});

test("exports are those declared in the file, types apart from values", () => {
  const source =
    'export interface A {}\nexport const b = 1;\nconst c = 2;\nexport { c as d };\nexport * from "./e.js";\nexport class F {}';
  const exports = readSource("source.ts", source).exports;
  expect(exports.map(({ name, isType }) => `${isType ? "type " : ""}${name}`)).toEqual(["type A", "b", "d", "F"]);
});

test("functions have their name, first line and length, however they are written", () => {
  const source = [
    "export function plain() {",
    "  return 1;",
    "}",
    "const arrow = async () =>",
    "  2;",
    "class Room {",
    "  method() {",
    "  }",
    "}",
    "const object = { inner: function () {} };",
    "[].map(() => 3);",
  ].join("\n");
  expect(readSource("source.ts", source).functions).toEqual([
    { name: "plain", line: 1, lines: 3, isAsync: false },
    { name: "arrow", line: 4, lines: 2, isAsync: true },
    { name: "method", line: 7, lines: 2, isAsync: false },
    { name: "inner", line: 10, lines: 1, isAsync: false },
    { name: "(anonymous)", line: 11, lines: 1, isAsync: false },
  ]);
});

test("a file that cannot be parsed is an error with its name", () => {
  expect(() => readSource("broken.ts", "const =")).toThrow("broken.ts");
});
