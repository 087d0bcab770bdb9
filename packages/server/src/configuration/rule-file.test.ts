/** Rule files as people write them, well and badly. */
import { readFileSync } from "node:fs";
import { type Rule, validateRules } from "sluice";
import { describe, expect, test } from "vitest";
import { MAX_DOCUMENT_BYTES } from "./document-text.js";
import { readRuleFile, writeRuleFile } from "./rule-file.js";

function mistakesIn(text: string): string[] {
  const read = readRuleFile(text);
  if ("mistakes" in read) return read.mistakes.map(told);
  const outcome = validateRules(read.document);
  return "mistakes" in outcome ? read.place(outcome.mistakes).map(told) : [];
}

function told({ path, message, line, column }: { path: string; message: string; line?: number; column?: number }) {
  return `${line ?? "-"}:${column ?? "-"}: ${path}: ${message}`;
}

test("the example reads without a mistake", () => {
  const text = readFileSync(new URL("../../../../examples/rules/api.yaml", import.meta.url), "utf8");
  expect(mistakesIn(text)).toEqual([]);
});

describe("a mistake is placed at", () => {
  const rule = "id: a\n    key: []\n    algorithm: fixed-window\n    limit: 1\n    window: 1m";
  const cases: { name: string; text: string; says: string | RegExp }[] = [
    {
      name: "the name of an unknown field",
      text: `rules:\n  - ${rule}\n    windw: 1m\n`,
      says: '7:5: rules[0].windw: unknown field, did you mean "window"?',
    },
    {
      name: "the field whose value is wrong",
      text: `rules:\n  - ${rule.replace("1m", "-5")}\n`,
      says: /^6:5: rules\[0\]\.window: /,
    },
    {
      name: "the rule that lacks a field",
      text: "rules:\n  - id: a\n    key: []\n    algorithm: gcra\n    window: 1m\n",
      says: /^2:5: rules\[0\]\.limit: /,
    },
    {
      name: "the item of a list",
      text: `- ${rule.replace("key: []", "key: [user, 5 5]")}\n`.replaceAll("\n    ", "\n  "),
      says: /^2:15: rules\[0\]\.key\[1\]: /,
    },
    { name: "the line of one-line JSON", text: '{"rules": [{"id": "A"}]}', says: /^1:13: rules\[0\]\.id: / },
    {
      name: "the second of two rules of one id",
      text: `rules:\n  - ${rule}\n  - ${rule}\n`,
      says: /^7:5: rules\[1\]\.id: expected a unique id/,
    },
    {
      name: "an odd name",
      text: `rules:\n  - ${rule}\n    "a b": 1\n`,
      says: /^7:5: rules\[0\]\["a b"\]: unknown field/,
    },
    { name: "the place where YAML breaks", text: "rules:\n  - id: [a\n", says: /^3:1: document: / },
    {
      name: "a name that is written twice",
      text: `rules:\n  - ${rule}\n    limit: 2\n`,
      says: /^7:5: document: Map keys must be unique/,
    },
    { name: "a tab where YAML wants spaces", text: "rules:\n\t- id: a\n", says: /^2:1: document: / },
  ];
  test.each(cases)("$name", ({ text, says }) => {
    const mistakes = mistakesIn(text);
    if (typeof says === "string") expect(mistakes).toContain(says);
    else
      expect(
        mistakes.filter((mistake) => says.test(mistake)),
        mistakes.join("\n"),
      ).toHaveLength(1);
  });
});

describe("refused whole:", () => {
  test("aliases of aliases that stand for gigabytes: counted, not followed", () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(", ")}]`,
    );
    expect(mistakesIn(`l0: &l0 [x, x]\n${levels.join("\n")}\nrules: *l12\n`)[0]).toMatch(
      /expected at most 100 aliases/,
    );
  });

  test("an alias that holds itself", () => {
    expect(mistakesIn("rules: &a [*a]\n")).toHaveLength(1);
  });

  test("a document of ten megabytes", () => {
    expect(mistakesIn(`rules: []\n#${" ".repeat(10 * 1024 * 1024)}`)).toEqual([
      expect.stringMatching(new RegExp(`^-:-: document: expected at most ${MAX_DOCUMENT_BYTES} bytes, got 104`)),
    ]);
  });

  test.each(["", "# only a comment", "rules:", "just words", "---\nrules: []\n---\nrules: []\n", "!!js/function 'x'"])(
    "%j",
    (text) => expect(mistakesIn(text).length).toBeGreaterThan(0),
  );

  test("names that would change prototypes, which change nothing", () => {
    for (const name of ["__proto__", "constructor", "prototype", "toString"]) {
      expect(mistakesIn(`rules: []\n${name}: { polluted: true }\n`)).toEqual([
        expect.stringMatching(new RegExp(`${name}: unknown field`)),
      ]);
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe("written and read again", () => {
  const rules = [
    {
      window: "1m",
      limit: 5,
      id: "odd",
      overrides: [{ limit: 7, match: { user: ["a", "yes", "1", "0x1", "null", "~", "a: b", "#c", "multi\nline"] } }],
      algorithm: "fixed-window",
      key: ["user", "on"],
      match: { user: "*", on: true, count: 5, "a b:c": "x" },
      description: "tab\tand 'quotes' and \"others\", é \u2028",
    },
  ] as unknown as Rule[];

  test("values keep their types and bytes", () => {
    const read = readRuleFile(writeRuleFile(rules));
    expect("document" in read && read.document).toEqual({ rules });
  });

  test("what a terminal would act on is escaped, and reads back as it was", () => {
    const unprintable = Array.from({ length: 0x3000 }, (_, code) => String.fromCodePoint(code)).filter((character) =>
      /(?![\n])\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/u.test(character),
    );
    expect(unprintable.length).toBeGreaterThan(80);
    const hostile = [...unprintable, "\ufeff", "\u{e0041}"].map((character) => ({
      ...structuredClone(rules[0]!),
      description: `a${character}b`,
      match: { [`k${character}`]: ["x", `${character}y`] },
    }));
    const text = writeRuleFile(hostile);
    expect(text).not.toMatch(/(?!\n)\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/u);
    const read = readRuleFile(text);
    expect("document" in read && read.document).toEqual({ rules: hostile });
  });

  test("fields come in the order of the rule table, and the text is the same every time", () => {
    const text = writeRuleFile(rules);
    const fields = [...text.matchAll(/^ {2}[- ] (\w+):/gm)].map(([, name]) => name);
    expect(fields).toEqual(["id", "description", "match", "key", "algorithm", "limit", "window", "overrides"]);
    const read = readRuleFile(text) as { document: { rules: Rule[] } };
    expect(writeRuleFile(read.document.rules)).toBe(text);
  });
});
