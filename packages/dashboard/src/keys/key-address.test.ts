import fc from "fast-check";
import { expect, test } from "vitest";
import { attributesOf, keyAddress, rowsOf } from "./key-address.js";

test("attributes survive the way into an address and back, whatever they hold", () => {
  const named = fc.string({ minLength: 1 }).filter((name) => name === name.trim() && name !== "__proto__");
  const attributes = fc.dictionary(named, fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(attributes, (given) => {
      const search = new URL(keyAddress(given), "http://localhost").search;
      expect(attributesOf(rowsOf(search))).toEqual({ ...given });
    }),
  );
});

test("no attributes is the plain address", () => {
  expect(keyAddress({})).toBe("/keys");
});

test("rows without a name or a value are left out; of two with one name the last counts", () => {
  const rows = [
    { name: " user ", value: "1" },
    { name: "user", value: "2" },
    { name: " ", value: "3" },
    { name: "tier", value: "" },
  ];
  expect(attributesOf(rows)).toEqual({ user: "2" });
});

test("parameters of the frame are no attributes, and attributes of their names have a prefix", () => {
  expect(rowsOf("?user=ann&range=6h&zone=UTC")).toEqual([{ name: "user", value: "ann" }]);
  const attributes = { from: "here", user: "ann" };
  expect(keyAddress(attributes)).toBe("/keys?attribute%3Afrom=here&user=ann");
  expect(attributesOf(rowsOf(keyAddress(attributes).slice(5)))).toEqual(attributes);
});
