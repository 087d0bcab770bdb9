/** The console and the command line spell one number alike: a figure read in one is found in the other. */
import { expect, test } from "vitest";
import * as page from "../../packages/dashboard/src/components/format.js";
import * as terminal from "../../packages/server/src/cli/print.js";

const counts = [0, 1, 999, 1_000, 12_345, 99_999, 100_000, 123_456, 1_234_567, 2 ** 53 - 1, -5, -12_345];
const rates = [0, 0.04, 0.05, 0.4, 1, 9.94, 9.96, 10, 10.4, 10.5, 1_234.5, 99_999.6, 100_000, 1_234_567.8];
const shares = [0, 0.000_01, 0.000_999, 0.001, 0.034, 0.0996, 0.1, 0.333, 0.5, 0.994, 0.9989, 0.9995, 1, 1.25];
const waits = [0, 0.2, 1, 999, 999.5, 1_000, 1_401, 9_950, 10_000, 59_001, 119_001, 120_000, 7_199_999, 7_200_000, 9e7];

test.each([
  ["counts", counts, page.count, terminal.figure],
  ["rates", rates, page.rate, terminal.rate],
  ["shares", shares, page.share, terminal.share],
  ["waits", [...waits, 2_147_483_646, 2_147_483_647, 2 ** 40], page.wait, terminal.spellMs],
] as const)("%s", (_, values, inConsole, inTerminal) => {
  expect(values.map(inConsole)).toEqual(values.map(inTerminal));
});
