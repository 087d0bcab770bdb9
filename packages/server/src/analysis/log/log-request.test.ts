import { expect, test } from "vitest";
import { parseRequestLine, withoutPort } from "./log-request.js";

test.each([
  ["GET /a b HTTP/1.1", { method: "GET", target: "/a b" }],
  ["GET /old", { method: "GET", target: "/old" }],
  ["OPTIONS * HTTP/1.1", { method: "OPTIONS", target: "*" }],
  ["GET http://example.com:80?x=1 HTTP/1.1", { method: "GET", host: "example.com:80", target: "/?x=1" }],
])("%j is a request", (line, expected) => {
  expect(parseRequestLine(line)).toEqual(expected);
});

test.each(["", "-", "GET", "GET  HTTP/1.1", "get / HTTP/1.1", "\u0016\u0003\u0001 / HTTP/1.1", "GET example HTTP/1.1"])(
  "%j is none",
  (line) => {
    expect(parseRequestLine(line)).toBeUndefined();
  },
);

test("only the port is stripped from addresses", () => {
  const given = ["10.0.0.1:443", "10.0.0.1", "[2001:db8::1]:443", "[2001:db8::1]", "2001:db8::1", undefined];
  expect(given.map(withoutPort)).toEqual([
    "10.0.0.1",
    "10.0.0.1",
    "2001:db8::1",
    "2001:db8::1",
    "2001:db8::1",
    undefined,
  ]);
});
