import { expect, test } from "vitest";
import type { AlertKind } from "../views/alerts.js";
import { AlertBook } from "./alert-book.js";
import type { Finding } from "./finding.js";

const finding = (given: Partial<Finding> = {}): Finding => ({
  subject: "unusual-rate:a",
  kind: "unusual-rate",
  severity: "warning",
  summary: "many",
  level: "fire",
  ...given,
});
const MINUTE_MS = 60_000;
const judged = new Set<AlertKind>(["unusual-rate", "store-degraded"]);

test("an alert fires once, continues while it is found, and resolves after its quiet time without findings", () => {
  const book = new AlertBook();
  const at = (minutes: number, findings: readonly Finding[]) =>
    book.judge({ findings, judged, nowMs: minutes * MINUTE_MS });
  expect(at(0, [finding()]).began).toHaveLength(1);
  expect(at(1, [finding()])).toEqual({ began: [], ended: [] });
  expect(at(5.99, [])).toEqual({ began: [], ended: [] });
  const { ended } = at(6, []);
  expect(ended).toMatchObject([{ state: "resolved", startedAtMs: 0, endedAtMs: 6 * MINUTE_MS, told: false }]);
  expect(book.open).toEqual([]);
});

test("hysteresis: a finding at the lower threshold keeps an alert firing, but does not start one", () => {
  const book = new AlertBook();
  const hold = finding({ level: "hold" });
  expect(book.judge({ findings: [hold], judged, nowMs: 0 }).began).toEqual([]);
  book.judge({ findings: [finding()], judged, nowMs: 0 });
  book.judge({ findings: [hold], judged, nowMs: 4 * MINUTE_MS });
  expect(book.judge({ findings: [], judged, nowMs: 8 * MINUTE_MS }).ended).toEqual([]);
  expect(book.judge({ findings: [], judged, nowMs: 9 * MINUTE_MS }).ended).toHaveLength(1);
});

test("an alert stays open while its kind is not evaluated, however long", () => {
  const book = new AlertBook();
  book.judge({ findings: [finding()], judged, nowMs: 0 });
  const other = new Set<AlertKind>(["store-degraded"]);
  expect(book.judge({ findings: [], judged: other, nowMs: 60 * MINUTE_MS }).ended).toEqual([]);
  expect(book.open).toHaveLength(1);
});

test("at most 50 alerts per kind fire, the strongest; other kinds are unaffected", () => {
  const book = new AlertBook();
  const many = Array.from({ length: 60 }, (_, i) =>
    finding({ subject: `unusual-rate:r${i}`, rule: `r${i}`, value: 100 * (i + 1), expected: 100 }),
  );
  const critical = finding({ subject: "unusual-rate:critical", rule: "critical", severity: "critical" });
  const store = finding({ subject: "store-degraded", kind: "store-degraded" });
  const { began } = book.judge({ findings: [...many, critical, store], judged, nowMs: 0 });
  const rules = began.filter(({ kind }) => kind === "unusual-rate").map(({ rule }) => rule);
  expect(rules).toHaveLength(50);
  expect(rules.slice(0, 2)).toEqual(["critical", "r59"]);
  expect(rules).not.toContain("r0");
  expect(began.some(({ kind }) => kind === "store-degraded")).toBe(true);
});

test("a firing alert's text is updated, but not while it fades; it is resent only when it becomes critical", () => {
  const book = new AlertBook();
  book.judge({ findings: [finding({ value: 10 })], judged, nowMs: 0 });
  book.put({ ...book.open[0]!, told: true });
  book.judge({ findings: [finding({ value: 99, summary: "other words" })], judged, nowMs: 1 });
  expect(book.open).toMatchObject([{ summary: "other words", value: 99, told: true }]);
  book.judge({ findings: [finding({ level: "hold", value: 5, summary: "hardly any" })], judged, nowMs: 1 });
  expect(book.open).toMatchObject([{ summary: "other words", value: 5, told: true }]);
  book.judge({ findings: [finding({ severity: "critical", summary: "worse" })], judged, nowMs: 2 });
  expect(book.open).toMatchObject([{ summary: "worse", severity: "critical", told: false, startedAtMs: 0 }]);
});

test.each([
  ["unusual-rate", 300_000],
  ["refusal-share", 300_000],
  ["new-heavy-key", 600_000],
  ["store-degraded", 20_000],
  ["store-memory", 20_000],
  ["propagation-stuck", 20_000],
] as const)("%s ends after %d ms without a finding, as docs/alerts.md states", (kind, quietMs) => {
  const book = new AlertBook();
  const one = new Set<AlertKind>([kind]);
  book.judge({ findings: [finding({ kind, subject: kind })], judged: one, nowMs: 0 });
  expect(book.judge({ findings: [], judged: one, nowMs: quietMs - 1 }).ended).toEqual([]);
  expect(book.judge({ findings: [], judged: one, nowMs: quietMs }).ended).toHaveLength(1);
});
