import { expect, test } from "vitest";
import { readReports, spellReport } from "./shared-reports.js";

const report = { value: 0.7, source: 'db "1"', key: "eu,db", ttlMs: 500 };

test("a report can be read back", () => {
  expect(readReports([1, spellReport(report), "0.7", 500])).toEqual([report]);
});

test("unreadable reports are skipped", () => {
  const good = spellReport(report);
  const reply = [1, "no json", "0.5", 9, "[1,2]", "0.5", 9, good, "NaN", 9, good, "7", 9, good, "0.5", 0, good, "0.7"];
  expect(readReports(reply)).toEqual([]);
});
