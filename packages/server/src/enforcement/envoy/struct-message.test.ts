import fc from "fast-check";
import { expect, test } from "vitest";
import { plainStruct, structOf } from "./struct-message.js";

test("any JSON object survives the round trip through a protobuf Struct", () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(json, (given) => {
      const plain = JSON.parse(JSON.stringify(given));
      expect(plainStruct(structOf(plain))).toEqual(plain);
    }),
  );
});

test("false, 0 and the empty text are values, not absences", () => {
  const plain = { off: false, none: 0, empty: "", nothing: null };
  expect(plainStruct(structOf(plain))).toEqual(plain);
});

test("a value without a kind is null, as the protocol defines it", () => {
  expect(plainStruct({ fields: { unset: {} } })).toEqual({ unset: null });
  expect(plainStruct({})).toEqual({});
});
