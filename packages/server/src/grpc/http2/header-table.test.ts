import fc from "fast-check";
import { expect, test } from "vitest";
import { type HeaderField, headerField } from "./header-field.js";
import { HeaderTable, TABLE_BYTES } from "./header-table.js";

const FIRST_OWN = 62;

test("the static table has the fields of appendix A at their indexes", () => {
  const table = new HeaderTable();
  const named = [2, 3, 8, 16, 23, 31, 61].map((index) => `${table.at(index)!.name}: ${table.at(index)!.value}`);
  expect(named).toEqual([
    ":method: GET",
    ":method: POST",
    ":status: 200",
    "accept-encoding: gzip, deflate",
    "authorization: ",
    "content-type: ",
    "www-authenticate: ",
  ]);
  expect(table.at(FIRST_OWN)).toBeUndefined();
});

const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ add: fc.integer({ min: 0, max: 900 }) }) },
  { weight: 1, arbitrary: fc.record({ add: fc.constant(TABLE_BYTES) }) },
  { weight: 2, arbitrary: fc.record({ resize: fc.integer({ min: 0, max: TABLE_BYTES + 1 }) }) },
);

test("it holds the newest fields that fit (model: a list trimmed at its end)", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 300 }), (operations) => {
      const table = new HeaderTable();
      let list: HeaderField[] = [];
      let most = TABLE_BYTES;
      const cut = (): void => {
        let sum = 0;
        list = list.filter(({ size }) => {
          sum += size;
          return sum <= most;
        });
      };
      for (const [i, one] of operations.entries()) {
        if ("add" in one) {
          const field = headerField(`f${i}`, "x".repeat(one.add));
          table.add(field);
          list = field.size > most ? [] : [field, ...list];
        } else if (table.resize(one.resize)) most = one.resize;
        else expect(one.resize).toBeGreaterThan(TABLE_BYTES);
        cut();
        for (let at = 0; at <= list.length; at++) expect(table.at(FIRST_OWN + at)).toBe(list[at]);
      }
    }),
  );
});
