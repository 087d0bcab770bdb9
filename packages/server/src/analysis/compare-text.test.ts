import { expect, test } from "vitest";
import type { Compared } from "./compare.js";
import { compareMarkdown, compareSvg } from "./compare-text.js";

const compared: Compared = {
  limit: 100,
  window: "1m",
  rows: [
    { algorithm: "fixed-window", requests: 400, refused: 190, worstWindow: 200, overLimit: 1 },
    { algorithm: "rolling-window, packed", requests: 400, refused: 200, worstWindow: 100, overLimit: 0 },
    { algorithm: "concurrency", requests: 400, refused: 0 },
  ],
};

test("without a Redis there are no columns for it", () => {
  expect(compareMarkdown(compared)).toBe(
    [
      "Limit 100 in 1m",
      "",
      "| algorithm | refused | worst window |",
      "| --- | --- | --- |",
      "| fixed-window | 190 of 400 | 200 of 100 (+100 %) |",
      "| rolling-window, packed | 200 of 400 | 100 of 100 |",
      "| concurrency | 0 of 400 | - |",
    ].join("\n"),
  );
});

test("measured figures stand beside the paper's", () => {
  const rows = [{ ...compared.rows[0]!, bytesPerKey: 136, paperBytes: 16, microseconds: 9.712, commands: 2.239 }];
  const lines = compareMarkdown({ ...compared, redisVersion: "7.0.15", rows }).split("\n");
  expect(lines[0]).toBe("Limit 100 in 1m, Redis 7.0.15");
  expect(lines.at(-1)).toBe("| fixed-window | 190 of 400 | 200 of 100 (+100 %) | 136 | 16 | 9.71 | 2.24 |");
});

test("bars are as long as their worst windows, and places have none", () => {
  const widths = [...compareSvg(compared).matchAll(/width="([\d.]+)" height="22"/g)].map(([, width]) => Number(width));
  expect(widths).toEqual([400, 200]);
});
