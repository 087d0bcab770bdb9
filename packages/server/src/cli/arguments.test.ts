import { expect, test } from "vitest";
import { parseCount, parseSize } from "./arguments.js";

test("counts and sizes", () => {
  expect(parseCount("keys")("1_000_000")).toBe(1_000_000);
  expect(parseSize("node-memory")("4gb")).toBe(4 * 2 ** 30);
  expect(parseSize("node-memory")("1.5MB")).toBe(1.5 * 2 ** 20);
});

test.each(["0", "-1", "1.5", "", "many", "1e400"])("keys: %j names what was expected", (text) => {
  expect(() => parseCount("keys")(text)).toThrow(
    `keys: expected a whole number of at least 1, got ${JSON.stringify(text)}`,
  );
});

test.each(["4", "0gb", "gb", "4 tb", "-1gb"])("size: %j names what was expected", (text) => {
  expect(() => parseSize("node-memory")(text)).toThrow("node-memory: expected a size such as 4gb or 512mb");
});
