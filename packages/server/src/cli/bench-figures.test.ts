import { expect, test } from "vitest";
import { BenchFigures } from "./bench-figures.js";
import type { BenchResult } from "./bench-result.js";
import { benchRows, notesOf } from "./bench-result.js";
import type { ToldDecision } from "./check.js";

const decision = (made: Partial<ToldDecision>) => ({ decision: { allowed: true, ...made } as ToldDecision });

test("decisions are counted by outcome, errors by kind; only real waits count as latencies", () => {
  const figures = new BenchFigures();
  figures.record(decision({}), 1);
  figures.record(decision({ degraded: "local" as never, lease: { id: "x", expiresAfterMs: 1 } }), 1);
  figures.record(decision({ allowed: false, rule: "a" }), 2);
  for (let i = 0; i < 2; i++) figures.record(decision({ allowed: false, rule: "b" }), 2);
  figures.record({ error: "ECONNREFUSED", waited: false }, 9_000);
  figures.record({ error: "timeout", waited: true }, 5_000);
  const report = figures.report(2_000);
  expect(report).toMatchObject({ requests: 7, requestsPerSecond: 2.5, allowed: 2, refused: 3, degraded: 1, held: 1 });
  expect(Object.entries(report.refusedBy)).toEqual([
    ["b", 2],
    ["a", 1],
  ]);
  expect(report.errorsBy).toEqual({ ECONNREFUSED: 1, timeout: 1 });
  expect(report.latencyMs.max).toBe(5_000);
});

test("unsent requests raise the percentiles", () => {
  const figures = new BenchFigures();
  for (let i = 0; i < 99; i++) figures.record(decision({}), 1);
  figures.recordUnsent(800, 10);
  const { requests, unsent, latencyMs } = figures.report(1_000);
  expect([requests, unsent, latencyMs.max]).toEqual([99, 10, 800]);
  expect(latencyMs.p95).toBeGreaterThan(790);
});

test("a server that invents a name with every answer fills a bounded table", () => {
  const figures = new BenchFigures();
  for (let i = 0; i < 1_000; i++) figures.record(decision({ allowed: false, rule: `rule-${i}` }), 1);
  const { refusedBy } = figures.report(1_000);
  expect(Object.keys(refusedBy)).toHaveLength(101);
  expect(refusedBy.others).toBe(900);
});

test("without any request there is still a table", () => {
  const result: BenchResult = {
    server: "http://127.0.0.1:8080",
    loop: "closed",
    connections: 8,
    keys: 1,
    ended: "interrupted",
    clientUtilisation: 0.95,
    ...new BenchFigures().report(0),
  };
  expect(benchRows(result)).toContainEqual(["requests a second", "0"]);
  expect(notesOf(result)).toEqual([
    expect.stringMatching(/^Interrupted/),
    expect.stringMatching(/^Closed loop/),
    expect.stringMatching(/busy 95 %/),
  ]);
});
