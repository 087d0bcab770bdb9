import { expect, test } from "vitest";
import { jsonFormat } from "./json-format.js";

const read = jsonFormat.reader({ fields: ["user.id", "tenant", "toString"] }).text;
const line = (fields: object): string => JSON.stringify({ time: "2026-11-16T07:00:00Z", ...fields });

test("dots descend into objects, and a literal name with dots is found too", () => {
  expect(read(line({ url: "/a", user: { id: 7 }, tenant: "acme" }))).toMatchObject({
    target: "/a",
    fields: ["7", "acme", undefined],
  });
  expect(read(line({ "url.path": "/b", "user.id": "x" }))).toMatchObject({
    target: "/b",
    fields: ["x", undefined, undefined],
  });
});

test("an absolute URL gives host and target", () => {
  expect(read(line({ url: "https://example.com/p?q=1" }))).toMatchObject({ host: "example.com", target: "/p?q=1" });
});

test("an entry without a request is blank; one without a time, and a non-object, are mistakes", () => {
  expect(read(line({ msg: "server started" }))).toBe("blank");
  expect(read(JSON.stringify({ url: "/a" }))).toBeUndefined();
  for (const text of ["[1]", "null", "3", '{"a":', "hello"]) expect(read(text)).toBeUndefined();
});

test("inherited object properties are no fields", () => {
  expect(read('{"time":"2026-11-16T07:00:00Z","url":"/a","__proto__":{"tenant":"evil"}}')).toMatchObject({
    fields: [undefined, undefined, undefined],
  });
});

test("a duration beyond thirty years is ignored: the request keeps the log's time", () => {
  const atMs = Date.UTC(2026, 10, 16, 7);
  for (const duration of [{ duration: 1e300 }, { request_time: 1e14 }, { Duration: "1e30" }, { duration_ms: 1e14 }])
    expect(read(line({ url: "/a", ...duration }))).toMatchObject({ atMs, durationMs: undefined });
  expect(read(line({ request: { uri: "/a" }, duration: 1e10 }))).toMatchObject({ atMs, durationMs: undefined });
  expect(read(line({ url: "/a", duration: 250 }))).toMatchObject({ atMs: atMs - 250, durationMs: 250 });
});
