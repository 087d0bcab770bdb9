import Type from "typebox";
import { expect, test } from "vitest";
import { batchBody } from "../enforcement/http/schemas.js";
import { validatorOf } from "./schema-mistake.js";

const wrongIn = (body: unknown): string | undefined => validatorOf(batchBody)(body, "body");

test("of many unknown fields the first is told, and how many more there are", () => {
  const fields = Object.fromEntries(Array.from({ length: 90_000 }, (_, i) => [`f${i}`, 1]));
  expect(wrongIn({ requests: [{ attributes: {}, ...fields }] })).toBe(
    'body.requests.0: unknown field "f0" and 89999 more',
  );
  expect(wrongIn({ requests: [], misspelt: 1 })).toBe('body: unknown field "misspelt"');
});

test.each([
  [
    { requests: [{ attributes: { user: { deep: 1 } } }] },
    "body.requests.0.attributes.user: expected text or a number or true or false, got an object",
  ],
  [
    { requests: [{ attributes: {} }, { attributes: {}, cost: -1 }] },
    "body.requests.1.cost: expected at least 0, got -1",
  ],
  [{ requests: [{}] }, "body.requests.0.attributes: expected a value, got nothing"],
  [{ requests: "x" }, 'body.requests: expected a list, got "x"'],
  [[], "body: expected an object, got a list"],
  [{ requests: new Array(1_001).fill({ attributes: {} }) }, "body.requests: expected at most 1000 items, got 1001"],
])("%j", (body, expected) => {
  expect(wrongIn(body)).toBe(expected);
});

test("the search ends at the first mistake: what lies behind it is not looked at", () => {
  let looks = 0;
  const trap = new Proxy({}, { get: () => looks++, ownKeys: () => [String(looks++)] });
  const schema = Type.Object({ list: Type.Array(Type.Object({ n: Type.Integer() })) });
  const validate = validatorOf(schema);
  const before = { list: [{ n: "wrong" }, trap] };
  expect(validate(before, "body")).toBe('body.list.0.n: expected a whole number, got "wrong"');
  expect(looks).toBe(0);
});
