import fc from "fast-check";
import { expect, test } from "vitest";
import { endToEnd } from "./message-headers.js";

test("fields of one connection stay behind, in any spelling; the others keep spelling, order and repetition", () => {
  const raw = ["X-A", "1", "KEEP-alive", "x", "x-a", "2", "TE", "gzip", "Upgrade", "h2c", "Accept", "*/*", "X-A", "1"];
  expect(endToEnd(raw)).toEqual(["X-A", "1", "x-a", "2", "Accept", "*/*", "X-A", "1"]);
});

test("fields that Connection names stay behind, whatever the spaces and the case", () => {
  const raw = [
    "Connection",
    " close ,X-Secret",
    "connection",
    "x-Other",
    "X-SECRET",
    "1",
    "X-Other",
    "2",
    "X-Kept",
    "3",
  ];
  expect(endToEnd(raw)).toEqual(["X-Kept", "3"]);
});

test("a client cannot have the fields removed that frame, route or authenticate its request", () => {
  const names = ["content-length", "host", "cookie", "authorization", "content-type"];
  const raw = ["Connection", names.join(","), ...names.flatMap((name) => [name, "x"])];
  expect(endToEnd(raw)).toEqual(names.flatMap((name) => [name, "x"]));
});

test("a client cannot have a field removed that a decision was made by", () => {
  const raw = ["Connection", "X-User, X-Other", "X-User", "42", "X-Other", "1"];
  expect(endToEnd(raw, { keep: new Set(["x-user"]) })).toEqual(["X-User", "42"]);
});

test("a field named for keeping is dropped all the same if the caller drops it or it is hop by hop", () => {
  const raw = ["X-User", "42", "TE", "gzip"];
  expect(endToEnd(raw, { keep: new Set(["x-user", "te"]), drop: (name) => name === "x-user" })).toEqual([]);
});

test("the result is a subsequence of what came, and the second pass changes nothing", () => {
  const field = fc.tuple(
    fc.constantFrom("Connection", "X-A", "x-b", "Host", "TE"),
    fc.constantFrom("x-a", "close", "host, X-B", ""),
  );
  fc.assert(
    fc.property(fc.array(field), (fields) => {
      const passed = endToEnd(fields.flat());
      let from = 0;
      for (let i = 0; i < passed.length; i += 2) {
        from = fields.findIndex(([name, value], at) => at >= from && name === passed[i] && value === passed[i + 1]) + 1;
        expect(from).toBeGreaterThan(0);
      }
      expect(endToEnd(passed)).toEqual(passed);
    }),
  );
});
