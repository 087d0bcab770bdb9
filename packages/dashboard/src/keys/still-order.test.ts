import fc from "fast-check";
import { expect, test } from "vitest";
import { rankingBehind, type StillOrder, stepTo, stillPage } from "./still-order.js";

const rowsOf = (names: readonly string[]) => names.map((name) => ({ name }));
const namesOf = (rows: readonly { name: string }[]) => rows.map(({ name }) => name);

test("the first page follows the list; the others are frozen, without rows that have ended", () => {
  expect(stillPage(rowsOf(["a", "b", "c"]), undefined, 2)).toMatchObject({ first: 0, end: 2, total: 3, fresh: 0 });
  const order = stepTo(rowsOf(["a", "b", "c", "d"]), undefined, 2);
  expect(order).toEqual({ names: ["a", "b", "c", "d"], first: 2 });
  // "new" lasts longer than all others; "a" was lifted, and "c" has ended.
  const page = stillPage(rowsOf(["new", "b", "d"]), order, 2);
  expect(page).toEqual({ rows: [{ name: "d" }], first: 2, end: 4, total: 4, fresh: 1 });
  expect(stepTo(rowsOf(["new", "b", "d"]), order, 0)).toBeUndefined();
});

test("whatever changes between pages, each row that stays is on exactly one of them", () => {
  const names = fc.uniqueArray(fc.integer({ min: 0, max: 60 }).map(String), { maxLength: 40 });
  fc.assert(
    fc.property(
      names,
      fc.array(names, { minLength: 20, maxLength: 20 }),
      fc.integer({ min: 1, max: 7 }),
      (start, later, perPage) => {
        let order: StillOrder | undefined;
        let all = start;
        const seen: string[] = [];
        const stays = new Set(start);
        for (let turn = 0; ; turn++) {
          const page = stillPage(rowsOf(all), order, perPage);
          seen.push(...namesOf(page.rows));
          if (page.end >= page.total) break;
          order = stepTo(rowsOf(all), order, page.first + perPage);
          all = later[turn % later.length]!;
          for (const name of stays) if (!all.includes(name)) stays.delete(name);
        }
        expect(new Set(seen).size).toBe(seen.length);
        for (const name of stays) expect(seen).toContain(name);
      },
    ),
  );
});

test("a key that moves onto or off the first page after it was left is shown once", () => {
  const same = (name: string): string => name;
  // "d" has moved above "a" and "b", and "b" has dropped below "c".
  expect(rankingBehind(["a", "b"], ["d", "a", "c", "b", "e"], same)).toEqual(["a", "b", "d", "c", "e"]);
  expect(rankingBehind([], ["a", "b"], same)).toEqual(["a", "b"]);
});
