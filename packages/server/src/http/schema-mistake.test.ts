import Type from "typebox";
import { expect, test } from "vitest";
import { batchBody } from "../enforcement/http/schemas.js";
import { validatorOf } from "./schema-mistake.js";

const wrongIn = (body: unknown): string | undefined => validatorOf(batchBody)(body, "body");

test("for many unknown fields the message has the first, the number of others, and the known fields", () => {
  const fields = Object.fromEntries(Array.from({ length: 90_000 }, (_, i) => [`f${i}`, 1]));
  expect(wrongIn({ requests: [{ attributes: {}, ...fields }] })).toBe(
    'body.requests[0]: unknown field "f0" and 89999 more; known are attributes, cost, id',
  );
  expect(wrongIn({ requests: [], misspelt: 1 })).toBe('body: unknown field "misspelt"; known are requests');
});

test.each([
  [
    { requests: [{ attributes: { user: { deep: 1 } } }] },
    "body.requests[0].attributes.user: expected text or a number or true or false, got an object",
  ],
  [
    { requests: [{ attributes: {} }, { attributes: {}, cost: -1 }] },
    "body.requests[1].cost: expected at least 0, got -1",
  ],
  [{ requests: [{}] }, "body.requests[0].attributes: expected an object, got nothing"],
  [{ requests: "x" }, 'body.requests: expected a list, got "x"'],
  [[], "body: expected an object, got a list"],
  [{ requests: new Array(1_001).fill({ attributes: {} }) }, "body.requests: expected at most 1000 items, got 1001"],
])("%j", (body, expected) => {
  expect(wrongIn(body)).toBe(expected);
});

test.each([
  ["^[0-9]{1,15}$", "a whole number of at most 15 digits"],
  ["^[1-9][0-9]{0,2}$", "a whole number from 1"],
  ["^/", "text that matches ^/"],
])("the pattern %s is %s", (pattern, words) => {
  const validate = validatorOf(Type.Object({ n: Type.String({ pattern }) }));
  expect(validate({ n: "abc" }, "querystring")).toBe(`querystring.n: expected ${words}, got "abc"`);
});

test("a list or an object that is too short is reported with its minimum length", () => {
  const ids = Type.Array(Type.String(), { minItems: 1 });
  const attributes = Type.Record(Type.String(), Type.String(), { minProperties: 2 });
  const validate = validatorOf(Type.Object({ ids, attributes }));
  expect(validate({ ids: [], attributes: { a: "", b: "" } }, "body")).toBe("body.ids: expected at least 1 item, got 0");
  expect(validate({ ids: ["x"], attributes: { a: "" } }, "body")).toBe(
    "body.attributes: expected at least 2 fields, got 1",
  );
});

test("the search stops at the first mistake: nothing after it is looked at", () => {
  let looks = 0;
  const trap = new Proxy({}, { get: () => looks++, ownKeys: () => [String(looks++)] });
  const schema = Type.Object({ list: Type.Array(Type.Object({ n: Type.Integer() })) });
  const validate = validatorOf(schema);
  const before = { list: [{ n: "wrong" }, trap] };
  expect(validate(before, "body")).toBe('body.list[0].n: expected a whole number, got "wrong"');
  expect(looks).toBe(0);
});
