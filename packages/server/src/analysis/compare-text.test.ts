import { expect, test } from "vitest";
import type { Compared } from "./compare.js";
import { compareMarkdown, compareSvg } from "./compare-text.js";

const compared: Compared = {
  limit: 100,
  window: "1m",
  rows: [
    { algorithm: "fixed-window", requests: 400, refused: 190, worstWindow: 200, overLimit: 1, paperAccuracy: "low" },
    { algorithm: "rolling-window, packed", requests: 400, refused: 200, worstWindow: 100, overLimit: 0 },
    { algorithm: "concurrency", requests: 400, refused: 0 },
  ],
};

test("without a Redis there are no columns for it", () => {
  expect(compareMarkdown(compared)).toBe(
    [
      "Limit 100 in 1m",
      "",
      "| algorithm | refused | worst window | the paper: accuracy |",
      "| --- | --- | --- | --- |",
      "| fixed-window | 190 of 400 | 200 of 100 (+100 %) | low |",
      "| rolling-window, packed | 200 of 400 | 100 of 100 | - |",
      "| concurrency | 0 of 400 | - | - |",
    ].join("\n"),
  );
});

test("measured figures are shown next to the paper's", () => {
  const rows = [{ ...compared.rows[0]!, bytesPerKey: 136, paperBytes: 16, microseconds: 9.712, commands: 2.239 }];
  const lines = compareMarkdown({ ...compared, redisVersion: "7.0.15", rows }).split("\n");
  expect(lines[0]).toBe("Limit 100 in 1m, Redis 7.0.15");
  expect(lines.at(-1)).toBe("| fixed-window | 190 of 400 | 200 of 100 (+100 %) | low | 136 | 16 | 9.71 | 2.24 |");
});

const widthsIn = (svg: string): number[] =>
  [...svg.matchAll(/width="([\d.]+)" height="22"/g)].map(([, width]) => Number(width));

test("bars are as long as their worst windows, and concurrency limits have none", () => {
  const svg = compareSvg(compared);
  expect(widthsIn(svg)).toEqual([300, 150]);
  expect(svg).toContain("200 (the paper: low accuracy)");
});

test("measured bytes are drawn on the same scale as the paper's", () => {
  const rows = [{ ...compared.rows[1]!, bytesPerKey: 400, paperBytes: 800 }];
  const svg = compareSvg({ ...compared, rows });
  expect(widthsIn(svg)).toEqual([300, 150]);
  expect(svg).toContain("400 (the paper: 800)");
});
