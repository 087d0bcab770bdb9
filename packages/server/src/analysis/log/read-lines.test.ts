import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { readLineBatches, readLines } from "./read-lines.js";

const folder = mkdtempSync(join(tmpdir(), "sluice-lines-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function linesOf(bytes: Buffer): Promise<string[]> {
  const file = join(folder, "log");
  writeFileSync(file, bytes);
  const lines: string[] = [];
  for await (const texts of readLines(file)) lines.push(...texts);
  return lines;
}

/** Some span several chunks of a file. */
const texts = Array.from(
  { length: 4_000 },
  (_, i) => `${i} ${"aé€"[i % 3]!.repeat((i * 7_919) % (i % 500 === 0 ? 300_000 : 900))}`,
);

test.each([
  ["with line feeds", (lines: string[]) => Buffer.from(`${lines.join("\n")}\n`)],
  ["of Windows, without a last line end", (lines: string[]) => Buffer.from(lines.join("\r\n"))],
  ["with a byte order mark", (lines: string[]) => Buffer.from(`\ufeff${lines.join("\n")}\n`)],
  [
    "compressed, in two members",
    (lines: string[]) =>
      Buffer.concat([gzipSync(`${lines.slice(0, 99).join("\n")}\n`), gzipSync(lines.slice(99).join("\n"))]),
  ],
])("lines of a file %s", async (_, written) => {
  const lines = await linesOf(written(texts));
  expect(lines.length).toBe(texts.length);
  // Compare indexes, because a diff of the lines would print megabytes.
  expect(lines.findIndex((line, i) => line !== texts[i])).toBe(-1);
});

test("a line longer than a MiB is truncated, and the next starts at its real end", async () => {
  const lines = await linesOf(Buffer.from(`first\n${"x".repeat(3_000_000)}\nlast\n`));
  expect(lines.map(({ length }) => length)).toEqual([5, 2 ** 20, 4]);
});

test("a batch overwrites the one before; a copy stays", async () => {
  const file = join(folder, "copied");
  const lines = Array.from({ length: 100_000 }, (_, i) => `line ${i}`);
  writeFileSync(file, lines.join("\n"));
  const copies = [];
  for await (const batch of readLineBatches(file)) copies.push(batch.copy());
  expect(copies.length).toBeGreaterThan(3);
  expect(copies.flatMap((copy) => copy.texts())).toEqual(lines);
});
