import { expect, test } from "vitest";
import { headerField } from "./header-field.js";
import { RequestHead } from "./request-head.js";

function headOf(...fields: (readonly [string, string])[]): RequestHead {
  const head = new RequestHead();
  for (const [name, value] of fields) head.add(headerField(name, value));
  return head;
}

const whole = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/x"],
] as const;

test("a request has a method, a scheme and a path, and keeps only the fields that are read", () => {
  const head = headOf(...whole, ["authorization", "a"], ["authorization", "b"], ["x-other", "c"], ["te", "trailers"]);
  expect(head.isRequest).toBe(true);
  expect([head.get("authorization"), head.get("traceparent"), head.path]).toEqual(["a", undefined, "/x"]);
});

test.each([
  ["no path", whole.slice(0, 2)],
  ["an empty path", [whole[0], whole[1], [":path", ""] as const]],
  ["a pseudo header twice", [...whole, whole[0]]],
  ["a pseudo header behind others", [["te", "trailers"] as const, ...whole]],
  ["a pseudo header of answers", [...whole, [":status", "200"] as const]],
  ["an unknown pseudo header", [...whole, [":test", "x"] as const]],
  ["upper case", [...whole, ["X-Test", "x"] as const]],
  ["a name that is none", [...whole, ["a b", "x"] as const]],
  ["an empty name", [...whole, ["", "x"] as const]],
  ["a field of HTTP/1.1", [...whole, ["connection", "close"] as const]],
  ["te that is not trailers", [...whole, ["te", "gzip"] as const]],
  ["a line break in a value", [...whole, ["x", "a\r\nb: c"] as const]],
  ["a NUL in a value", [...whole, ["x", "a\0"] as const]],
  ["a length that is no number", [...whole, ["content-length", "-1"] as const]],
  ["two lengths", [...whole, ["content-length", "1"] as const, ["content-length", "2"] as const]],
])("%s is no request", (_what, fields) => {
  expect(headOf(...fields).isRequest).toBe(false);
});

test("the lines of x-forwarded-for are joined into one list, as every proxy may add its own", () => {
  const lines = ["10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.4"].map((value) => ["x-forwarded-for", value] as const);
  expect(headOf(...whole, ...lines).get("x-forwarded-for")).toBe("10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4");
});

test("trailers have no pseudo-header fields", () => {
  expect(headOf(["x", "y"]).isTrailer).toBe(true);
  expect(headOf([":path", "/"]).isTrailer).toBe(false);
  expect(headOf(["Bad", "y"]).isTrailer).toBe(false);
});

test("a header list above 64 KiB is too large, and nothing past the bound is kept", () => {
  const head = headOf(...whole, ["x", "y".repeat(65_536)], ["authorization", "a"]);
  expect(head.isTooLarge).toBe(true);
  expect(head.get("authorization")).toBeUndefined();
});
