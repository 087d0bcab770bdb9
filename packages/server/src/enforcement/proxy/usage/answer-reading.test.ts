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
  expect(readingOf({ headers }).kind).toBe(kind);
  expect(readingOf({ headers }).decoding !== undefined).toBe(coding === "gzip" || coding === "br");
});
