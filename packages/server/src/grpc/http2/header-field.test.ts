import { expect, test } from "vitest";
import { fieldOf, headerField } from "./header-field.js";

test.each([
  ["te", "trailers", "other"],
  ["te", "gzip", "malformed"],
  ["A-", "b", "malformed"],
  ["connection", "close", "malformed"],
  [":status", "200", "malformed"],
  [":authority", "a", ":authority"],
  [":authority", "a\0", "malformed"],
  ["x-other", " a", "malformed"],
  ["x-other", "a", "other"],
])("%s: %s is %s, also if the name was checked with another value", (name, value, kind) => {
  expect(headerField(name, value)).toMatchObject({ name, value, kind });
  expect(fieldOf(headerField(name, "z"), value)).toEqual(headerField(name, value));
});
