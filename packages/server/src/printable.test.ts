import fc from "fast-check";
import { expect, test } from "vitest";
import { printable, printableJson, printableLines } from "./printable.js";

const hostile = ["\u001b[31m", "\u0000", "\u007f", "\u009b", "\u202e", "\u2028", "\u2029", "\u200b", "\ud800"];

test("controls, direction marks, separators and halves of surrogate pairs become dots", () => {
  expect(hostile.map(printable)).toEqual(["·[31m", ...Array(hostile.length - 1).fill("·")]);
});

test("letters of any script, emoji and plain spaces stay as they are", () => {
  expect(printable("Zürich, 東京, 🙂 ok")).toBe("Zürich, 東京, 🙂 ok");
});

test("a text of several lines keeps its line ends, and nothing else", () => {
  expect(printableLines("a\tb\nc\rd")).toBe("a·b\nc·d");
});

test("JSON keeps its meaning, and contains no character that a terminal interprets", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(...hostile), (value, extra) => {
      const given = { value, extra };
      const text = printableJson(given);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(given)));
      expect(text).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    }),
  );
});
