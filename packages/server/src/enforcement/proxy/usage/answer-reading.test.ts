import { expect, test } from "vitest";
import { readingOf } from "./answer-reading.js";

test.each([
  ["application/json", undefined, "json"],
  ["Application/JSON; charset=utf-8", "identity", "json"],
  ["application/problem+json", undefined, "json"],
  ["text/event-stream; charset=utf-8", undefined, "events"],
  ["text/event-stream", "gzip", "events"],
  ["application/json", "br", "json"],
  ["application/x-ndjson", undefined, "lines"],
  ["application/json", "zstd", "unread"],
  ["audio/mpeg", undefined, "unread"],
  [undefined, undefined, "unread"],
])("%s in the coding %s is read as %s", (type, coding, kind) => {
  const headers = {
    ...(type !== undefined && { "content-type": type }),
    ...(coding !== undefined && { "content-encoding": coding }),
  };
  const answer = { headers, statusCode: 200 };
  expect(readingOf(answer, "POST").kind).toBe(kind);
  expect(readingOf(answer, "POST").decoding !== undefined).toBe(coding === "gzip" || coding === "br");
});

test.each([
  ["audio/mpeg", true],
  ["Image/png", true],
  ["application/octet-stream", false],
  ["text/plain", false],
])("a body of the type %s is itself media: %s", (type, isMedia) => {
  expect(readingOf({ headers: { "content-type": type }, statusCode: 200 }, "POST")).toMatchObject({ isMedia });
});

test.each([
  ["HEAD", 200],
  ["GET", 204],
  ["GET", 304],
])("the answer to %s of status %i has no body to decode", (method, statusCode) => {
  expect(readingOf({ headers: { "content-encoding": "gzip" }, statusCode }, method)).toEqual({
    kind: "unread",
    isMedia: false,
    decoding: undefined,
  });
});
