import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bounds } from "./field-kinds.js";
import { candidate, override, rule, variant } from "./fields.js";
import { ruleJsonSchema, rulesDocumentJsonSchema } from "./rule-json-schema.js";

const page = readFileSync(new URL("../../../../docs/rules.md", import.meta.url), "utf8");

test("the schema has every field of the table and no other", () => {
  const schema = ruleJsonSchema() as { properties: object; required: string[]; additionalProperties: boolean };
  expect(Object.keys(schema.properties)).toEqual([...rule.fields.keys()]);
  expect(schema.required).toEqual(["id", "key", "algorithm"]);
  expect(schema.additionalProperties).toBe(false);
});

test("under each algorithm, the schema refuses the fields of the others", () => {
  const { allOf } = ruleJsonSchema() as { allOf: { if: object; then: object }[] };
  expect(allOf[0]).toEqual({
    if: { properties: { algorithm: { const: "token-bucket" } }, required: ["algorithm"] },
    // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema.
    then: {
      properties: {
        align: false,
        timezone: false,
        minInterval: false,
        storage: false,
        burst: false,
        ttl: false,
        signal: false,
        class: false,
        classes: false,
        fairBy: false,
        limit: { not: { const: "auto" } },
      },
      required: ["limit"],
      oneOf: [{ required: ["window"] }, { required: ["refill"] }],
    },
  });
  expect(allOf).toHaveLength(7);
  expect(allOf[6]!.then).toMatchObject({ required: ["signal"], properties: { window: false, candidate: false } });
});

test("the document's schema names its dialect and survives JSON", () => {
  const schema = rulesDocumentJsonSchema();
  expect(schema.$schema).toBe("https://json-schema.org/draft/2020-12/schema");
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
});

test.each([
  ["rule", rule],
  ["override", override],
  ["candidate", candidate],
  ["variant", variant],
])("docs/rules.md lists every field of a %s", (_, { fields }) => {
  for (const name of fields.keys()) expect(page).toMatch(new RegExp(`^\\| \`${name}\` \\|`, "m"));
});

test("docs/rules.md lists no field that does not exist, and every bound", () => {
  const known = new Set([rule, override, candidate, variant].flatMap(({ fields }) => [...fields.keys()]));
  for (const [, name] of page.matchAll(/^\| `(\w+)` \|/gm)) expect(known).toContain(name);
  for (const bound of Object.values(bounds)) expect(page).toContain(bound.toLocaleString("en-US").replaceAll(",", " "));
});
