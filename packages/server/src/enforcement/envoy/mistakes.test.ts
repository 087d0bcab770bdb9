import { expect, test } from "vitest";
import { Mistakes } from "./mistakes.js";

test("a few mistakes are reported as they are", () => {
  const mistakes = new Mistakes();
  expect([mistakes.some, mistakes.list()]).toEqual([false, []]);
  mistakes.add("one");
  expect([mistakes.some, mistakes.list()]).toEqual([true, ["one"]]);
});

test("a million mistakes, each of a megabyte, are reported in bounded lines with the total", () => {
  const mistakes = new Mistakes();
  const long = "x".repeat(2 ** 20);
  for (let i = 0; i < 1_000_000; i++) mistakes.add(long);
  const told = mistakes.list();
  expect(told).toHaveLength(101);
  expect(told.at(-1)).toBe("and 999900 more mistakes");
  expect(told.join("\n").length).toBeLessThan(110_000);
});
