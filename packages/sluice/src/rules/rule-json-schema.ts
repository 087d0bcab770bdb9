/**
 * The rule document as JSON Schema 2020-12 (the dialect of OpenAPI 3.1), made from the table in `fields.ts`. It expresses what a schema
 * can: editors and API clients catch most mistakes with it, `validate-rules.ts` catches all.
 */
import { algorithmNames, type JsonSchema } from "./field-kinds.js";
import { numberFieldsOf, type ObjectOf, rule, ruleDocument, type Shape } from "./fields.js";
import type { AlgorithmName } from "./rule.js";

export function rulesDocumentJsonSchema(): JsonSchema {
  return { $schema: "https://json-schema.org/draft/2020-12/schema", ...schemaOf(ruleDocument) };
}

export function ruleJsonSchema(): JsonSchema {
  return schemaOf(rule);
}

function schemaOf(shape: Shape): JsonSchema {
  switch (shape.shape) {
    case "leaf":
      return { description: `Expected ${shape.expected}.`, ...shape.schema };
    case "list":
      return { type: "array", items: schemaOf(shape.item), maxItems: shape.most };
    case "one-or-many":
      return {
        anyOf: [
          schemaOf(shape.item),
          { type: "array", items: schemaOf(shape.item), minItems: 1, maxItems: shape.most },
        ],
      };
    case "by-attribute":
      return {
        type: "object",
        propertyNames: shape.name.schema,
        minProperties: shape.least,
        maxProperties: shape.most,
        properties: Object.fromEntries([...shape.special].map(([name, special]) => [name, schemaOf(special)])),
        additionalProperties: schemaOf(shape.value),
      };
    case "object":
      return {
        type: "object",
        properties: Object.fromEntries([...shape.fields].map(([name, field]) => [name, schemaOf(field.shape)])),
        required: [...shape.fields].filter(([, field]) => field.required).map(([name]) => name),
        additionalProperties: false,
        ...(shape === rule ? { allOf: algorithmNames.map((name) => onlyFieldsOf(name, shape)) } : {}),
      };
  }
}

/** For an algorithm, fields of the others are refused, and its own limit and window are required. */
function onlyFieldsOf(algorithm: AlgorithmName, shape: ObjectOf): JsonSchema {
  const known = numberFieldsOf.get(algorithm)!;
  const foreign = [...shape.fields].filter(([, field]) => field.algorithms?.includes(algorithm) === false);
  const refused = Object.fromEntries(foreign.map(([name]) => [name, false]));
  return {
    if: { properties: { algorithm: { const: algorithm } }, required: ["algorithm"] },
    // biome-ignore lint/suspicious/noThenProperty: `then` is a keyword of JSON Schema.
    then: {
      ...(algorithm === "load-shedding"
        ? { properties: refused, required: ["signal"] }
        : {
            properties: { ...refused, limit: { not: { const: "auto" } } },
            required: ["limit", ...(known.includes("window") && !known.includes("refill") ? ["window"] : [])],
          }),
      ...(known.includes("refill") && { oneOf: [{ required: ["window"] }, { required: ["refill"] }] }),
    },
  };
}
