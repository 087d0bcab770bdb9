/**
 * Fleets in virtual time, on the shipped code (docs/world.md): the bars of prefetch that no two cores can show in real time. Runs the test
 * that holds them, and prints what it found.
 *
 *   node bench/world.mjs
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runTool } from "../scripts/run-command.mjs";
import { printBars } from "./report.mjs";

/** @typedef {{ bar: string, algorithm: string, instances: number, overload: number, over: number, utilisation: number, storeCallsPerRequest: number, share: number }} Row */

/** @returns {Promise<Row[]>} */
export async function worldSection() {
  const folder = await mkdtemp(join(tmpdir(), "sluice-bench-"));
  const file = join(folder, "figures.jsonl");
  process.env.WORLD_FIGURES = file;
  try {
    // Figures that miss a bar are printed as such: how the test ends does not matter here.
    await runTool({ package: "vitest", bin: "vitest.mjs", args: ["run", "test/world/fleet-load.test.ts", "--silent"] });
    return (await readFile(file, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  } finally {
    delete process.env.WORLD_FIGURES;
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {Row[]} rows */
export function printWorld(rows) {
  console.log("\nPrefetch in virtual time, the shipped code on simulated fleets");
  for (const { bar, algorithm, instances, overload, over, utilisation, storeCallsPerRequest, share } of rows) {
    console.log(
      `  ${bar.padEnd(9)} ${algorithm.padEnd(15)}${String(instances).padStart(4)} instances, ${overload} times the limit: over ${over}, ` +
        `utilisation ${utilisation.toFixed(3)}, ${storeCallsPerRequest.toFixed(4)} store calls a request, ${(100 * share).toFixed(1)} % in process`,
    );
  }
}

/** @param {Row[]} rows */
export function worldBars(rows) {
  const most = (/** @type {number[]} */ numbers) => Math.max(...numbers);
  const of = (/** @type {string} */ bar) => rows.filter((row) => row.bar === bar);
  const over = most(rows.map((row) => row.over));
  const least = Math.min(...of("overload").map(({ utilisation }) => utilisation));
  const calls = most(of("hot key").map(({ storeCallsPerRequest }) => storeCallsPerRequest));
  // Of what the limit admits: beyond it requests are refused.
  const share = Math.min(...of("hot key").map((row) => row.share * Math.max(1, row.overload)));
  return [
    {
      what: "prefetch, world: uses beyond the limit, 1 to 512 instances, with and without faults",
      wanted: "at most 0",
      measured: over,
      met: over === 0,
    },
    {
      what: "prefetch, world: utilisation, 2 to 512 instances at 1.2 to 3 times the limit",
      wanted: "at least 0.98",
      measured: least,
      met: least >= 0.98,
    },
    {
      what: "prefetch, world: store calls a request, 8 instances, 100 000 a second on one key, 0.8 to 2 times the limit",
      wanted: "at most 0.03",
      measured: calls,
      met: calls <= 0.03 && share >= 0.9,
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const rows = await worldSection();
  printWorld(rows);
  printBars(worldBars(rows));
}
