import { expect, test } from "vitest";
import { cookieValue } from "./cookies.js";

test.each([
  ["a=1; sid=x; b=2", "x"],
  ["sid=first; sid=second", "first"],
  ['sid="quoted"', "quoted"],
  ["sid=a%20b", "a%20b"],
  ["sid=a=b==", "a=b=="],
  [" sid = spaced ", "spaced"],
  ["xsid=1; sid2=2", undefined],
  ["sid", undefined],
  ["", undefined],
  [undefined, undefined],
])("%j holds the cookie %j", (header, value) => {
  expect(cookieValue(header, "sid")).toBe(value);
});

test("names such as __proto__ are ordinary cookie names", () => {
  expect(cookieValue("a=1", "constructor")).toBeUndefined();
  expect(cookieValue("__proto__=1", "__proto__")).toBe("1");
});
