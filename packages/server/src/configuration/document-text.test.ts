/** The stored text is read back as it was, whatever form it has; and judged in slices as it is judged whole. */
import * as fc from "fast-check";
import { type Rule, validateRules } from "sluice";
import { describe, expect, test } from "vitest";
import { readDocument, writeDocument } from "./document-text.js";
import { Pace } from "./pace.js";
import { validateDocument } from "./validate-document.js";

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
    const text = await writeDocument(rules, new Pace());
    expect(await readDocument(text, new Pace())).toEqual({ rules });
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
    expect(await readDocument(text, new Pace())).toEqual(JSON.parse(text));
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
    async (text) => await expect(readDocument(text, new Pace())).rejects.toThrow(SyntaxError),
  );

  test("any two texts of equal rules are equal, whatever the order of their fields", async () => {
    const { id, ...rest } = rule("a", { overrides: overrides(1) });
    const turned = { ...rest, id } as Rule;
    expect(await writeDocument([turned], new Pace())).toBe(
      await writeDocument([rule("a", { overrides: overrides(1) })], new Pace()),
    );
  });
});

describe("validation in slices", () => {
  const flaws = fc.constantFrom<object>(
    {},
    {},
    {},
    { limit: 0 },
    { windw: 1 },
    { id: "r0" },
    { window: "month" },
    { key: 5 },
  );
  const overrideFlaws = fc.constantFrom<object>(
    {},
    {},
    {},
    {},
    { limit: 0 },
    { algorithm: "gcra" },
    { match: { tier: 1 } },
    { burst: 1 },
  );

  test("finds the same rules or the same mistakes as validation of the whole", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(flaws, { minLength: 1, maxLength: 30 }),
        fc.array(overrideFlaws, { maxLength: 30 }),
        async (some, others) => {
          const rules = Array.from({ length: 250 }, (_, i) => ({ ...rule(`r${i}`), ...some[i % 60] }));
          const many = Array.from({ length: 450 }, (_, i) => ({ match: { user: `u${i}` }, ...others[i % 90] }));
          const document = { rules: [...rules, rule("big", { overrides: many })] };
          const whole = validateRules(document);
          const sliced = await validateDocument(document, new Pace());
          if ("rules" in whole) expect(sliced).toEqual(whole);
          else {
            const sorted = (outcome: typeof whole | typeof sliced) =>
              "mistakes" in outcome ? outcome.mistakes.map(({ path, message }) => `${path}: ${message}`).sort() : [];
            expect(sorted(sliced)).toEqual(sorted(whole));
          }
        },
      ),
      { numRuns: 40 },
    );
  });
});
