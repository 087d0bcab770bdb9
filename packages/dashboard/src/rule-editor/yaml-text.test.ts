import { expect, test } from "vitest";
import { lineOf, parseYaml, yamlOf } from "./yaml-text.js";

const draft = {
  id: "a",
  match: { method: ["GET", "POST"] },
  key: ["user"],
  limit: 5,
  overrides: [{ match: { user: "x" }, limit: 9 }],
};

test("a draft survives the round trip through its text", () => {
  expect(parseYaml(yamlOf(draft))).toEqual({ draft });
});

test("a syntax error is reported with its line", () => {
  expect(parseYaml("id: a\nkey: [user\nlimit: 5\n")).toEqual({ error: expect.stringMatching(/^line \d+: /) });
  expect(parseYaml("- a\n")).toEqual({ error: "expected a rule: fields and their values" });
  expect(parseYaml("")).toHaveProperty("error");
});

test("an alias bomb is refused instead of expanded", () => {
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ..."bcdefghi".split("").map((name, i) => {
      const below = "abcdefgh"[i];
      return `${name}: &${name} [${Array(9).fill(`*${below}`).join(",")}]`;
    }),
  ].join("\n");
  expect(parseYaml(bomb)).toHaveProperty("error");
});

test("a mistake's field is located in the text, or else its nearest parent", () => {
  const text = yamlOf(draft);
  const lines = text.split("\n");
  expect(lines[lineOf(text, "limit")! - 1]).toContain("limit: 5");
  expect(lines[lineOf(text, "overrides[0].limit")! - 1]).toContain("limit: 9");
  expect(lines[lineOf(text, "match.method[1]")! - 1]).toContain("POST");
  expect(lineOf(text, "nowhere")).toBeUndefined();
});
