import { expect, test } from "vitest";
import { LOOP_KEY, UtilisationReports } from "./utilisation-reports.js";

const report = (value: number, source: string, more: object = {}) => ({
  value,
  source,
  key: "",
  ttlMs: 1_000,
  ...more,
});

test("the highest current report counts; a source replaces its own", () => {
  const reports = new UtilisationReports();
  expect(reports.highest("", 0)).toBeUndefined();
  reports.add(report(0.4, "a"), 0);
  reports.add(report(0.9, "b"), 0);
  expect(reports.highest("", 500)).toBe(0.9);
  reports.add(report(0.1, "b"), 500);
  expect(reports.highest("", 600)).toBe(0.4);
  expect(reports.highest("", 1_200)).toBe(0.1);
  expect(reports.highest("", 1_500)).toBeUndefined();
});

test("a report with a key counts for that gauge, one without a key for all", () => {
  const reports = new UtilisationReports();
  reports.add(report(0.9, "a", { key: "db" }), 0);
  reports.add(report(0.2, "a"), 0);
  expect([reports.highest("db", 1), reports.highest("cache", 1), reports.highest("", 1)]).toEqual([0.9, 0.2, 0.2]);
});

test("reports are bounded, and expired ones make room", () => {
  const reports = new UtilisationReports();
  for (let i = 0; i < 1_000; i++) reports.add(report(0.5, `s${i}`, { key: `k${i % 7}` }), 0);
  expect(() => reports.add(report(0.5, "one more"), 999)).toThrow(/at most 1000 reports/);
  reports.add(report(0.6, "s1", { key: "k1" }), 999);
  reports.add(report(0.5, "one more"), 1_001);
  expect([...reports.list(1_001)]).toHaveLength(2);
});

test("a table that callers have filled still accepts the instances' own reports", () => {
  const reports = new UtilisationReports();
  for (let i = 0; i < 1_000; i++) reports.add(report(0, `s${i}`, { ttlMs: 300_000 }), 0);
  for (let i = 0; i < 1_000; i++) reports.add(report(0.7, `i${i}`, { key: LOOP_KEY }), 0);
  expect(reports.highestOf(LOOP_KEY, 1)).toBe(0.7);
  expect(() => reports.add(report(0.7, "one more", { key: LOOP_KEY }), 1)).toThrow(/at most 2000 reports/);
});

test.each([
  ["NaN", Number.NaN],
  ["below 0", -0.01],
  ["above 1", 1.0001],
  ["a text", "0.5" as unknown as number],
])("a value that is %s is refused, and changes nothing", (_, value) => {
  const reports = new UtilisationReports();
  expect(() => reports.add(report(value, "a"), 0)).toThrow(/value: expected a utilisation from 0 to 1/);
  expect(reports.highest("", 0)).toBeUndefined();
});

test("names and terms have bounds", () => {
  const reports = new UtilisationReports();
  for (const more of [
    { source: "x".repeat(257) },
    { key: "x".repeat(257) },
    { ttlMs: 0 },
    { ttlMs: 300_001 },
    { ttlMs: Number.NaN },
  ]) {
    expect(() => reports.add(report(0.5, "a", more), 0)).toThrow(/expected .*, got /);
  }
});
