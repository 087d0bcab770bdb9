import { expect, test } from "vitest";
import { ResponseReading, wholeNumber } from "./response-reading.js";

function readingOf(body: string, headers: Record<string, string> = { "content-type": "application/json" }) {
  const reading = new ResponseReading({ paths: ["usage/total"], headerOf: (name) => headers[name] });
  reading.push(Buffer.from(body));
  return reading;
}

test("only the configured place reports a cost, and the largest number there counts", () => {
  expect(readingOf('{"total":1,"usage":{"total":5,"x":{"total":9}}}').numberAt("usage/total")).toBe(5);
  expect(readingOf('{"usage":{"total":5},"usage":{"total":3}}').numberAt("usage/total")).toBe(5);
  expect(readingOf('{"usage/total":7,"usage~1total":8}').numberAt("usage/total")).toBeUndefined();
});

test("bytes that are compressed, or not JSON, are counted but not read", () => {
  const compressed = { "content-type": "application/json", "content-encoding": "gzip" };
  const reading = readingOf('{"usage":{"total":5}}', compressed);
  expect([reading.bytes, reading.numberAt("usage/total")]).toEqual([21, undefined]);
  expect(readingOf('{"usage":{"total":5}}', {}).numberAt("usage/total")).toBeUndefined();
});

test.each([
  ["0", 0],
  ["12", 12],
  ["12.01", 13],
  ["9007199254740991", 9_007_199_254_740_991],
  ["9007199254740993", undefined],
  ["9".repeat(400), undefined],
  ["-5", undefined],
  ["1e3", undefined],
  ["0x10", undefined],
  ["", undefined],
  ["12, 13", undefined],
])("%j as a cost is %s", (text, cost) => {
  expect(wholeNumber(text)).toBe(cost);
});
