/**
 * Holds the names of instants in the library: an instant of the monotonic clock ends in `MonotonicMs`; every other instant is wall time,
 * ms since the epoch. The two must never be compared or stored for one another.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const library = fileURLToPath(new URL("../packages/sluice/src", import.meta.url));

/** The pieces of a source between semicolons and braces: about its statements. */
function statementsOf(source: string): string[] {
  return source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "").split(/[;{}]/);
}

function misnamed(source: string): string[] {
  return statementsOf(source).filter((statement) => {
    const namesMonotonic = /MonotonicMs\b/.test(statement);
    if (/\bperformance\.now\(\)/.test(statement)) return !namesMonotonic;
    return /\b(Date|[cC]lock)\.now\(\)/.test(statement) && namesMonotonic;
  });
}

test("the reader finds an instant of one clock under a name of the other", () => {
  expect(misnamed("const sinceMs = performance.now();")).toHaveLength(1);
  expect(misnamed("const endMonotonicMs = Date.now() + 5;")).toHaveLength(1);
  expect(misnamed("const sinceMonotonicMs = performance.now(); const atMs = this.#clock.now();")).toEqual([]);
});

test("instants of the monotonic clock end in MonotonicMs, and no others do", () => {
  const files = readdirSync(library, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  expect(files.length).toBeGreaterThan(100);
  const mistakes = files.flatMap((file) =>
    misnamed(readFileSync(join(library, file), "utf8")).map((statement) => `${file}: ${statement.trim()}`),
  );
  expect(mistakes, `\n${mistakes.join("\n")}\n`).toEqual([]);
});
