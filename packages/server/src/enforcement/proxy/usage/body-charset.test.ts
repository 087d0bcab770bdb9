import { expect, test } from "vitest";
import { isReadAlike } from "./body-charset.js";

test.each([
  ["", true],
  ["application/json", true],
  ["application/json; charset=utf-8", true],
  ['text/plain; Charset="UTF-8"', true],
  ["text/plain;charset=ISO-8859-1", true],
  ["application/json; charset=utf-7", false],
  ["application/json; charset=ISO-2022-JP", false],
  ["application/json; charset=utf-16", false],
  ["application/json; charset=utf-8; charset=utf-7", false],
  ["application/json; charset = utf-7", false],
  ["application/json; charset*=us-ascii''utf-7", false],
  ["application/json; charset*0=utf; charset*1=-7", false],
  ["application/json; charset=", false],
])("a body whose content type is %j is the same text to all servers: %s", (type, isAlike) => {
  expect(isReadAlike(type)).toBe(isAlike);
});
