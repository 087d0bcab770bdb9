import { expect, test } from "vitest";
import {
  attributeName,
  cost,
  description,
  duration,
  ipMatchValue,
  isObject,
  type Kind,
  matchValue,
  oneOf,
  ruleId,
  timezone,
  variantName,
  weight,
  wholeNumber,
  windowLength,
} from "./field-kinds.js";

test.each([
  ["ruleId", ruleId, ["a", "a.b-c_9", "x".repeat(64)], ["", "A", "-a", "a b", "x".repeat(65), 7]],
  ["variantName", variantName, ["Control", "b.2"], ["", "a b", "x".repeat(65)]],
  ["attributeName", attributeName, ["user", "x-forwarded:for", "a/b@c$d"], ["", "a b", "x".repeat(129), null]],
  ["description", description, ["", "x".repeat(1_000)], ["x".repeat(1_001), 7]],
  ["weight", weight, [0, 0.5, 1_000_000], [-1, 1_000_001, "1", Number.NaN]],
  ["duration", duration, ["250ms", "90s", "1d"], ["-5", "1", "day", 60, "0s"]],
  ["windowLength", windowLength, ["1m", "day", "week", "month"], ["year", "", 60]],
  ["timezone", timezone, ["UTC", "Europe/Paris"], ["Mars/Base", "", 7, "x".repeat(65)]],
  ["matchValue", matchValue, ["", "x".repeat(256), 7, true], ["x".repeat(257), null, Number.NaN, ["a"]]],
  ["ipMatchValue", ipMatchValue, ["*", "10.0.0.0/8", "::1"], ["10.0.0.0/33", "host", 7]],
  ["cost", cost, [0, 5, { attribute: "tokens" }], [-1, 1.5, { attribute: "" }, { attribute: "a", other: 1 }, "1"]],
] as [string, Kind, unknown[], unknown[]][])(
  "%s accepts what it describes, and nothing else",
  (_, kind, accepted, refused) => {
    expect(accepted.filter((value) => !kind.accepts(value))).toEqual([]);
    expect(refused.filter((value) => kind.accepts(value))).toEqual([]);
  },
);

test("a whole number has a minimum and is safe", () => {
  const { accepts, expected } = wholeNumber(1);
  expect([0, 1, 2 ** 53 - 1, 2 ** 53, 1.5].map(accepts)).toEqual([false, true, true, false, false]);
  expect(expected).toBe("a whole number from 1 to 9007199254740991");
});

test("one of several words, each quoted in the message", () => {
  const { accepts, expected } = oneOf(["a", "b"]);
  expect(["a", "b", "c", undefined].map(accepts)).toEqual([true, true, false, false]);
  expect(expected).toBe('one of "a", "b"');
});

test("an object is an object in the JSON sense", () => {
  expect([{}, Object.create(null)].map(isObject)).toEqual([true, true]);
  expect([null, [], new Map(), new Date(), "x"].map(isObject)).toEqual([false, false, false, false, false]);
});
