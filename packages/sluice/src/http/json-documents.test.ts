import { expect, test } from "vitest";
import { type BodyKind, bodyKind, JsonDocuments } from "./json-documents.js";
import { JsonScanner } from "./json-scanner.js";

function numbersIn(kind: BodyKind, text: string, pieceBytes = 1): string[] {
  const seen: string[] = [];
  const scanner: JsonScanner = new JsonScanner({ literal: (literal) => seen.push(`${scanner.path}=${literal}`) });
  const documents = new JsonDocuments({ kind, scanner });
  const whole = Buffer.from(text);
  for (let i = 0; i < whole.length; i += pieceBytes) documents.push(whole.subarray(i, i + pieceBytes));
  return seen;
}

test.each([
  ["application/json; charset=utf-8", "json"],
  ["Application/Problem+JSON", "json"],
  ["text/event-stream", "events"],
  ["application/x-ndjson", "lines"],
  ["application/jsonl", "lines"],
  ["text/html", "unread"],
  ["", "unread"],
])("%s is read as %s", (type, kind) => {
  expect(bodyKind(type)).toBe(kind);
});

test.each([1, 3, 1_000])("documents are found in events and lines, in pieces of %i bytes", (pieceBytes) => {
  const events = 'data: {"a":1}\n\nevent: x\ndata: {"a":\ndata: 2}\n\ndata: [DONE]\n\ndata: 3\n\n';
  expect(numbersIn("events", events, pieceBytes)).toEqual(["a=1", "a=2", "=3"]);
  expect(numbersIn("lines", '{"a":1}\nnonsense\n{"a":2}\n', pieceBytes)).toEqual(["a=1", "a=2"]);
  expect(numbersIn("json", '{"a":{"b":1}}', pieceBytes)).toEqual(["a/b=1"]);
  expect(numbersIn("unread", '{"a":1}', pieceBytes)).toEqual([]);
});
