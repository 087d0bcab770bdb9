import { expect, test } from "vitest";
import { LastNamed } from "./last-named.js";

test("recent ones are found, old ones are not", () => {
  const named = new LastNamed<number>(100);
  for (let i = 0; i < 1_000; i++) named.set(`n${i}`, i);
  for (let i = 900; i < 1_000; i++) expect(named.get(`n${i}`)).toBe(i);
  expect(named.get("n700")).toBeUndefined();
});
