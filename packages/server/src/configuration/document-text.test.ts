/** The stored text is read back as it was, whatever form it has. */
import type { Rule } from "sluice";
import { TimeSlice } from "sluice/internal";
import { describe, expect, test } from "vitest";
import { documentOf, readDocument, writeDocument } from "./document-text.js";

const rule = (id: string, more: object = {}) =>
  ({ id, key: ["user"], algorithm: "fixed-window", limit: 1, window: "1m", ...more }) as Rule;
const overrides = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ match: { user: `u${i}\n"]}` }, limit: i + 1 }));

describe("a document", () => {
  test.each([
    ["no rule", []],
    ["one rule", [rule("a")]],
    [
      "overrides in the middle and at the end",
      [rule("a", { overrides: overrides(2) }), rule("b"), rule("c", { overrides: overrides(3) })],
    ],
    [
      "text that looks like our own lines",
      [rule("a", { description: '"overrides":[' }), rule("b", { description: "]}\n]}," })],
    ],
  ])("with %s is read back as it was, by us and by any JSON parser", async (_, rules) => {
    const text = await writeDocument(rules, new TimeSlice());
    expect(await readDocument(text, new TimeSlice())).toEqual({ rules });
    expect(JSON.parse(text)).toEqual({ rules });
  });

  test.each([
    '{"rules":[\n{"id":"a"}\n,{"id":"b"}\n]}',
    '{"rules":[\n\n]}\n',
    '{"rules":[\n{"id":"a","overrides":[\n]}\n]}\n',
    '{"rules":[\n]\n,"more":1}',
    '  {"rules": []}',
    "[]",
  ])("in another form than ours is read all the same: %j", async (text) => {
    expect(await readDocument(text, new TimeSlice())).toEqual(JSON.parse(text));
  });

  test.each([
    "",
    "{",
    '{"rules":[\n',
    '{"rules":[\n{"id":"a"},\n',
    '{"rules":[\n]}\n]}\n',
    '{"rules":[\n{"id":"a","overrides":[\n{}\n',
  ])(
    "that is no JSON is an error: %j",
    async (text) => await expect(readDocument(text, new TimeSlice())).rejects.toThrow(SyntaxError),
  );

  test("of rules in force is written once, whoever lists them; other rules get their own", async () => {
    const rules = [rule("a"), rule("ü")];
    const [first, second] = await Promise.all([documentOf(rules), documentOf(rules)]);
    expect(second).toBe(first);
    expect(JSON.parse(first.toString())).toEqual({ rules });
    expect(await documentOf([rule("a")])).not.toBe(first);
  });

  test("any two texts of equal rules are equal, whatever the order of their fields", async () => {
    const { id, ...rest } = rule("a", { overrides: overrides(1) });
    const turned = { ...rest, id } as Rule;
    expect(await writeDocument([turned], new TimeSlice())).toBe(
      await writeDocument([rule("a", { overrides: overrides(1) })], new TimeSlice()),
    );
  });
});
