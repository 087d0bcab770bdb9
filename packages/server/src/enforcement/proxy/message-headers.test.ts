import fc from "fast-check";
import { expect, test } from "vitest";
import { endToEnd } from "./message-headers.js";

test("hop-by-hop fields are dropped, in any spelling; the others keep spelling, order and repetition", () => {
  const raw = ["X-A", "1", "KEEP-alive", "x", "x-a", "2", "TE", "gzip", "Upgrade", "h2c", "Accept", "*/*", "X-A", "1"];
  expect(endToEnd(raw)).toEqual(["X-A", "1", "x-a", "2", "Accept", "*/*", "X-A", "1"]);
});

test("fields named by Connection are dropped, regardless of whitespace and case", () => {
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

test("a client cannot remove fields that frame, route or authenticate its request", () => {
  const names = ["content-length", "host", "cookie", "authorization", "content-type"];
  const raw = ["Connection", names.join(","), ...names.flatMap((name) => [name, "x"])];
  expect(endToEnd(raw)).toEqual(names.flatMap((name) => [name, "x"]));
});

test("a client cannot remove a field that the decision used", () => {
  const raw = ["Connection", "X-User, X-Other", "X-User", "42", "X-Other", "1"];
  expect(endToEnd(raw, { keep: new Set(["x-user"]) })).toEqual(["X-User", "42"]);
});

test("a field to keep is still dropped if the caller drops it or it is hop-by-hop", () => {
  const raw = ["X-User", "42", "TE", "gzip"];
  expect(endToEnd(raw, { keep: new Set(["x-user", "te"]), drop: (name) => name === "x-user" })).toEqual([]);
});

test("the result is a subsequence of the input, and a second pass changes nothing", () => {
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
