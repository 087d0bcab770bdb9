/** Command output: tables and colour on a terminal, plain columns when piped (honours `NO_COLOR` and `FORCE_COLOR`), JSON on request. */
import Table from "cli-table3";
import picocolors from "picocolors";
import { printable, printableJson } from "../printable.js";
import { wantsColour } from "../settings/settings.js";

// By default picocolors treats a CI system as a terminal, but a pipe is not one anywhere.
export const colours = picocolors.createColors(wantsColour(process.stdout.isTTY === true));

export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(value)}\n`);
}

export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Cells may contain untrusted text, which is made printable. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const cells = rows.map((row) => row.map(printable));
  printLine(process.stdout.isTTY ? framed(head, cells) : plain(head, cells));
}

function framed(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({ head: [...head], style: { head: colours.isColorSupported ? ["bold"] : [], border: [] } });
  for (const row of rows) table.push([...row]);
  return table.toString();
}

/** A cell of a megabyte must not widen every line. */
const WIDEST_COLUMN = 256;

/** Columns for people and `awk`. */
export function plain(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows];
  // Not `Math.max(...)`: there may be a hundred thousand rules, more than a call's maximum number of arguments.
  const widths = head.map((_, i) =>
    lines.reduce((widest, line) => Math.max(widest, Math.min(WIDEST_COLUMN, (line[i] ?? "").length)), 0),
  );
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

// Numbers are formatted as in the console (`packages/dashboard/src/components/format.ts`); a test compares the two.

/** `NEVER_MS` of the decision: no wait helps. A longer one is a real wait, such as a month's. */
const NEVER_MS = 2_147_483_647;

/** "1.4 s", "3 min": for people, rounded up. */
export function spellMs(ms: number): string {
  if (ms === NEVER_MS) return "never";
  if (ms < 1_000) return `${Math.ceil(ms)} ms`;
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  if (ms < 120_000) return `${Math.ceil(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.ceil(ms / 60_000)} min`;
  return `${Math.ceil(ms / 3_600_000)} h`;
}

/** "user=42 region=eu": in the command line's notation. */
export function spellKey(attributes: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(attributes).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "(all together)" : pairs.join(" ");
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** "1,234,567"; fractions keep two digits. */
export function figure(value: number): string {
  return numbers.format(value);
}

/** A rate, with a decimal for small values: 0.4, 12, 1,234. */
export function rate(value: number): string {
  return value > 0 && value < 10 ? String(Number(value.toFixed(1))) : figure(Math.round(value));
}

/** A share in per cent; never "0 %" for a positive one, nor "100 %" for less than all. */
export function share(part: number): string {
  const percent = 100 * part;
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  if (percent < 100 && percent > 99.9) return ">99.9 %";
  return `${Number(percent.toFixed(percent < 10 ? 1 : 0))} %`;
}
