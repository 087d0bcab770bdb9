import { expect, test } from "vitest";
import { nextSettlementName } from "./settlement-name.js";

test("names are letters only, and all different", () => {
  const names = Array.from({ length: 20_000 }, nextSettlementName);
  expect(new Set(names).size).toBe(names.length);
  expect(names.every((name) => /^[a-z]{16}$/.test(name))).toBe(true);
});
