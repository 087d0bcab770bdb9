import fc from "fast-check";
import { expect, test } from "vitest";
import { attributesOf, keyAddress, rowsOf } from "./key-address.js";

test("attributes survive the round trip through a URL, whatever they contain", () => {
  const named = fc.string({ minLength: 1 }).filter((name) => name === name.trim() && name !== "__proto__");
  const attributes = fc.dictionary(named, fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(attributes, (given) => {
      const search = new URL(keyAddress(given), "http://localhost").search;
      expect(attributesOf(rowsOf(search))).toEqual({ ...given });
    }),
  );
});

test("without attributes the URL has no query", () => {
  expect(keyAddress({})).toBe("/keys");
});

test("rows without a name or a value are left out; of duplicates the last wins", () => {
  const rows = [
    { name: " user ", value: "1" },
    { name: "user", value: "2" },
    { name: " ", value: "3" },
    { name: "tier", value: "" },
  ];
  expect(attributesOf(rows)).toEqual({ user: "2" });
});

test("frame parameters are no attributes, and attributes with their names get a prefix", () => {
  expect(rowsOf("?user=ann&range=6h&zone=UTC")).toEqual([{ name: "user", value: "ann" }]);
  const attributes = { from: "here", user: "ann" };
  expect(keyAddress(attributes)).toBe("/keys?attribute%3Afrom=here&user=ann");
  expect(attributesOf(rowsOf(keyAddress(attributes).slice(5)))).toEqual(attributes);
});
