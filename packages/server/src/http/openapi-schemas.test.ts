import { expect, test } from "vitest";
import { publishSchemas } from "./openapi-schemas.js";

const publish = (schema: object) => {
  const schemas: Record<string, unknown> = {};
  return { made: publishSchemas<object>(schema, schemas), schemas };
};

test("objects inside a named schema are named after their position, array items in the singular", () => {
  const inner = { type: "object", properties: { name: { type: "string" } } };
  const statuses = { type: "array", items: inner };
  const { made, schemas } = publish({ title: "Stats", type: "object", properties: { total: inner, statuses } });
  expect(made).toEqual({ $ref: "#/components/schemas/Stats" });
  expect(Object.keys(schemas)).toEqual(["StatsTotal", "StatsStatus", "Stats"]);
  expect(schemas.Stats).toMatchObject({
    properties: { statuses: { items: { $ref: "#/components/schemas/StatsStatus" } } },
  });
});

test("integers are int64 unless declared otherwise, and a union of constants is one enum", () => {
  const { made } = publish({
    anyOf: [
      { type: "string", enum: ["hour"] },
      { type: "string", enum: ["day"] },
    ],
  });
  expect(made).toEqual({ type: "string", enum: ["hour", "day"] });
  expect(publish({ type: "integer" }).made).toEqual({ type: "integer", format: "int64" });
  expect(publish({ type: "integer", format: "int32" }).made).toEqual({ type: "integer", format: "int32" });
});

test("two objects in one union are numbered to keep their names distinct; a property called title is no title", () => {
  const one = { type: "object", properties: { a: { type: "string" } } };
  const other = { type: "object", properties: { title: { type: "string" } } };
  const { schemas } = publish({ title: "Either", anyOf: [one, other, { type: "string" }] });
  const references = [{ $ref: "#/components/schemas/Either1" }, { $ref: "#/components/schemas/Either2" }];
  expect(schemas).toEqual({
    Either1: { ...one, title: "Either1" },
    Either2: { ...other, title: "Either2" },
    Either: { title: "Either", anyOf: [...references, { type: "string" }] },
  });
});

test("a name that another schema has is not given twice", () => {
  const owner = (field: string) => ({
    title: field,
    type: "object",
    properties: { at: { type: "object", properties: { [field]: { type: "string" } } } },
  });
  const schemas: Record<string, unknown> = { AAt: { type: "string", title: "AAt" } };
  publishSchemas(owner("A"), schemas);
  expect(schemas.A).toMatchObject({ properties: { at: { type: "object" } } });
});

test("the route's own schema is left unchanged: validation uses it", () => {
  const given = { title: "A", type: "object", properties: { n: { type: "integer" } } };
  const before = structuredClone(given);
  publish(given);
  expect(given).toEqual(before);
});
