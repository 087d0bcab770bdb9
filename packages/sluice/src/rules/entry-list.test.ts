import { expect, test } from "vitest";
import { EntryList } from "./entry-list.js";

const valuesOf = ({ entries, count }: EntryList): number[] => entries.slice(0, count);

test.each([5, 32, 33, 400])("%i entries are sorted, and only those that count", (count) => {
  const list = new EntryList();
  list.addAll(Array.from({ length: 500 }, () => -1));
  list.count = 0;
  const numbers = Array.from({ length: count }, (_, i) => (i * 7919) % 1_000);
  for (const number of numbers) list.add(number);
  list.sort();
  expect(valuesOf(list)).toEqual([...numbers].sort((a, b) => a - b));
});

test("an emptied list is filled from its start", () => {
  const list = new EntryList();
  list.addAll([1, 2, 3]);
  list.count = 0;
  list.add(9);
  expect(valuesOf(list)).toEqual([9]);
});
