import { expect, test } from "vitest";
import { drawChart } from "./chart.js";

const paint = {
  green: (text: string) => text,
  red: (text: string) => text.replaceAll("█", "x"),
  dim: (text: string) => text,
};

test("one column per step, with refusals stacked on top", () => {
  const lines = drawChart(
    {
      startMs: 0,
      stepMs: 1_000,
      rows: [
        [8, 4],
        [4, 0],
        [0, 0],
      ],
    },
    80,
    paint,
  );
  expect(lines.slice(0, 8).map((line) => line.slice(10))).toEqual([
    "x  ",
    "x  ",
    "x  ",
    "x  ",
    "██ ",
    "██ ",
    "██ ",
    "██ ",
  ]);
  expect(lines[0]).toContain("8.0/s");
  expect(lines.at(-1)).toContain("1970-01-01 00:00:00 1970-01-01 00:00:03 UTC");
});

test("spans of ten minutes and more are labelled to the minute", () => {
  const rows = Array.from({ length: 100 }, () => [10, 0]);
  expect(drawChart({ startMs: 0, stepMs: 8_000, rows }, 120, paint).at(-1)).toMatch(
    / 1970-01-01 00:00 +1970-01-01 00:13 UTC$/,
  );
});

test("more steps than columns are merged without losing any", () => {
  const rows = Array.from({ length: 120 }, () => [10, 0]);
  const lines = drawChart({ startMs: 0, stepMs: 1_000, rows }, 50, paint);
  expect(lines[7]!.slice(10)).toBe("█".repeat(40));
  expect(lines[0]).toContain("10/s");
});

test("no data, no lines", () => {
  expect(drawChart({ startMs: 0, stepMs: 1_000, rows: [] }, 80, paint)).toEqual([]);
  expect(drawChart({ startMs: 0, stepMs: 1_000, rows: [[0, 0]] }, 80, paint)).toEqual([]);
});
