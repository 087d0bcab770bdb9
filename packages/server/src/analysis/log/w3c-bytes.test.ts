import { expect, test } from "vitest";
import type { LogRequest } from "./log-request.js";
import { W3cBytes } from "./w3c-bytes.js";
import { columnsOf } from "./w3c-columns.js";

function read(columns: string, line: string, headers = new Set<string>()): LogRequest | undefined {
  const pieces = new W3cBytes();
  pieces.columns = columnsOf(columns, [], headers);
  const bytes = Buffer.from(`${line}\nnext`);
  return pieces.read(bytes, 0, bytes.length - 5);
}

test("columns between tabs, or between the spaces of a line without tabs", () => {
  const columns = "date time c-ip cs-uri-stem cs-uri-query time-taken cs(User-Agent)";
  const expected = { target: "/a b?q", peer: "10.0.0.1", durationMs: 31, atMs: Date.UTC(2026, 10, 16, 7) - 31 };
  expect(read(columns, "2026-11-16\t07:00:00\t10.0.0.1\t/a b\tq\t31\té")).toMatchObject(expected);
  expect(read(columns, "2026-11-16 07:00:00 10.0.0.1 /a - 31 é")).toMatchObject({ ...expected, target: "/a" });
});

test.each([
  ["a byte beyond ASCII in a column that is read", "date time cs-uri-stem", "2026-11-16\t07:00:00\t/é"],
  ["one in the first column", "cs-uri-stem date time", "/é\t2026-11-16\t07:00:00"],
  ["a comment", "date time cs-uri-stem", "#Fields: date"],
  ["a line without a path", "date time cs-uri-stem", "2026-11-16\t07:00:00\t-"],
  [
    "a column of 5000 characters",
    "date time cs-uri-stem cs-uri-query",
    `2026-11-16\t07:00:00\t/${"a".repeat(5_000)}\tq`,
  ],
])("%s is left to the reader of texts", (_, columns, line) => {
  expect(read(columns, line)).toBeUndefined();
});

test("so is every line if headers are wanted", () => {
  const line = "2026-11-16\t07:00:00\t/a\tx";
  expect(read("date time cs-uri-stem cs(Cookie)", line, new Set(["cookie"]))).toBeUndefined();
  expect(read("date time cs-uri-stem cs(Cookie)", line)).toMatchObject({ target: "/a" });
});
