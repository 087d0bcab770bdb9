import { expect, test } from "vitest";
import { checkValues } from "./option-values.js";

test.each([
  [{ paths: { ignorecase: true } }, /^paths\.ignorecase: no such option; known are encodedSlashes, ignoreCase, /],
  [{ paths: { ignoreCase: "yes" } }, /^paths\.ignoreCase: expected true or false, got "yes"$/],
  [{ paths: { encodedSlashes: "decoded" } }, /^paths\.encodedSlashes: expected "keep" or "decode", got "decoded"$/],
  [{ paths: true }, /^paths: expected an object, got true$/],
  [{ cost: "5" }, /^cost: expected a whole number of at least 0, or a function, got "5"$/],
  [{ cost: 1.5 }, /^cost: expected a whole number/],
  [{ skip: true }, /^skip: expected a function, got true$/],
  [{ attributes: { user: "ann" } }, /^attributes: expected a function/],
  [{ address: "x-real-ip" }, /^address: expected a function/],
  [{ skipFailed: "true" }, /^skipFailed: expected true or false/],
])("%j is refused when the middleware is made", (options, message) => {
  expect(() => checkValues(options)).toThrow(message);
});

test("options that are right or undefined pass, whatever the limiter itself checks", () => {
  const paths = { encodedSlashes: "decode", ignoreCase: true, ignoreParams: undefined };
  expect(() => checkValues({ paths })).not.toThrow();
  const options = { cost: 0, skip: () => true, attributes: undefined, skipFailed: false, limit: "any", constructor: 1 };
  expect(() => checkValues(options)).not.toThrow();
});
